import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "sdk-1.15";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { apiOf, saying, type Api, type StateRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream, readStream, type SentEvent } from "../../helpers/server-sent-events.ts";

/**
 * A client that joins a run with a checkpoint receives the events after that checkpoint (`joinStream({checkpointId})` of the SDK since
 * 1.15). Also tests the mode `lifecycle` over the API.
 */

const GRAPHS = fileURLToPath(new URL("graphs/langgraph.json", import.meta.url));
const TEN_STEPS = { assistant_id: "ten-steps", input: saying("go"), stream_mode: ["values", "updates"] };
const ALL = { headers: { "last-event-id": "-1" } };

describe.each([
  ["in the server's own process", 0],
  ["in a graph process", 1],
])("%s", (_, graphProcesses) => {
  let server: TestServer;
  let replica: TestServer;
  let api: Api;
  beforeAll(async () => {
    server = await startTestServer({ graphProcesses, graphConfigFile: GRAPHS });
    const { connectionString } = server;
    replica = await startTestServer({ connectionString, role: "api", graphConfigFile: GRAPHS });
    api = apiOf(server);
  });
  afterAll(async () => {
    await replica.close();
    await server.close();
  });

  const executed = async (body: object): Promise<RunRecord> => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...TEN_STEPS, ...body });
    await api.join(threadId, run.run_id);
    return run;
  };
  const read = async (
    { url }: { url: string },
    { thread_id, run_id }: RunRecord,
    query: string,
    headers: object = ALL,
  ): Promise<SentEvent[]> =>
    await readStream(`${url}/threads/${thread_id}/runs/${run_id}/stream?${query}`, headers);
  const stepsIn = (values: unknown): number => (values as { steps?: number[] }).steps?.length ?? 0;
  const framesOf = (events: readonly SentEvent[]) => events.map(({ frame }) => frame);

  test("a resumable run can be joined after each of its checkpoints, on any server", async () => {
    const run = await executed({ stream_resumable: true });
    const all = await read(server, run, "");
    const { body: history } = await api.post<StateRecord[]>(`/threads/${run.thread_id}/history`, {
      limit: 100,
    });
    const states = history.filter(({ values }) => values.messages?.length === 1);
    expect(states).toHaveLength(11);
    for (const { values, checkpoint } of states) {
      const shown = all.findIndex(
        ({ event, data }) => event === "values" && stepsIn(data) === stepsIn(values),
      );
      expect(shown).toBeGreaterThan(0);
      const query = `checkpoint_id=${checkpoint?.checkpoint_id}`;
      for (const place of [server, replica])
        expect(framesOf(await read(place, run, query))).toEqual(framesOf(all.slice(shown + 1)));
    }
  });

  test("the SDK joins after a checkpoint, also without an event id; an event id takes precedence", async () => {
    const run = await executed({ stream_resumable: true });
    const { thread_id: threadId, run_id: runId } = run;
    const [, , before] = await api.history(threadId);
    const checkpointId = before?.checkpoint?.checkpoint_id ?? "";
    const client = new Client({ apiUrl: server.url, apiKey: "unused" });
    const joined = async (lastEventId?: string): Promise<string[]> => {
      const events = [];
      const options = { checkpointId, ...(lastEventId !== undefined && { lastEventId }) };
      for await (const { event } of client.runs.joinStream(threadId, runId, options)) events.push(event);
      return events;
    };
    const last = ["updates", "values", "updates", "values"];
    expect(await joined("-1")).toEqual(last);
    expect(await joined()).toEqual(last);
    const all = await read(server, run, "");
    expect(await joined(String(all.length - 2))).toEqual(last.slice(-1));
    const stream = await openStream(
      `${server.url}/threads/${threadId}/runs/${runId}/stream?checkpoint_id=${checkpointId}`,
    );
    expect(stream.headers.get("location")).toContain(`checkpoint_id=${checkpointId}`);
    expect(await stream.rest()).toHaveLength(4);
  });

  test("a join receives all events if the run does not know the checkpoint or is not resumable", async () => {
    const run = await executed({ stream_resumable: true });
    const other = await executed({ stream_resumable: true });
    const all = framesOf(await read(server, run, ""));
    expect(all.length).toBeGreaterThan(20);
    const [head] = await api.history(other.thread_id);
    const query = `checkpoint_id=${head?.checkpoint?.checkpoint_id}`;
    expect(framesOf(await read(server, run, query))).toEqual(all);

    const threadId = await api.aThread();
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, { body: TEN_STEPS });
    const seen = framesOf(await stream.rest());
    const [plain] = await api.runs(threadId);
    const [last] = await api.history(threadId);
    const own = `checkpoint_id=${last?.checkpoint?.checkpoint_id}`;
    expect(framesOf(await read(server, plain!, own))).toEqual(seen);
  });

  test("a run streams the same whether or not it is resumable", async () => {
    const shapeOf = (events: readonly SentEvent[]) =>
      events.map(({ id, event }) => [id, event.replace(/:[0-9a-f-]{36}$/, "")]);
    const streamed = async (body: object) =>
      await readStream(`${server.url}/threads/${await api.aThread()}/runs/stream`, {
        body: { assistant_id: "team", input: saying("go"), ...body },
      });
    const body = { stream_mode: ["values", "tasks", "updates", "debug"] };
    for (const stream_subgraphs of [true, false]) {
      const asked = { ...body, stream_subgraphs };
      expect(shapeOf(await streamed({ ...asked, stream_resumable: true }))).toEqual(
        shapeOf(await streamed(asked)),
      );
    }
  });

  test("a subgraph that fails is reported as failed, with the reason, before the run is", async () => {
    const client = new Client({ apiUrl: server.url, apiKey: "unused" });
    const options = { input: saying("go"), streamMode: ["lifecycle" as const] };
    const published = [];
    for await (const { event, data } of client.runs.stream(await api.aThread(), "team", options))
      published.push({ event, data });
    const error = { error: "RangeError", message: "no more" };
    const namespace = [expect.stringMatching(/^team:[0-9a-f-]{36}$/) as string];
    const name = expect.stringMatching(/^lifecycle\|team:[0-9a-f-]{36}$/) as string;
    expect(published.slice(1)).toEqual([
      { event: name, data: { event: "started", namespace } },
      { event: name, data: { event: "failed", namespace, error } },
      { event: "error", data: error },
    ]);
  });
});
