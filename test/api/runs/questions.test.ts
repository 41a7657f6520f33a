import { fileURLToPath } from "node:url";
import { MemorySaver, type StateSnapshot } from "@langchain/langgraph";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { waitingStatements } from "../../helpers/locks.ts";
import { graph as nested } from "../threads/graphs/nested-approval.ts";

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
afterAll(() => server.close());

const isStoring = async (): Promise<boolean> => {
  const texts = await waitingStatements((text) => query(server, text));
  return texts.some((text) => text.includes("new_checkpoints"));
};

test("a question is streamed after it is stored, so a client that reads the state at once finds it there", async () => {
  const threadId = await api.aThread();
  const holder = new pg.Client({ connectionString: server.connectionString });
  await holder.connect();
  try {
    await holder.query("begin");
    await holder.query("lock table threadloom.checkpoints in share mode");
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "question", input: {}, stream_mode: "updates" },
    });
    let asked = false;
    const question = stream
      .until(({ event, data }) => event === "updates" && JSON.stringify(data).includes("__interrupt__"))
      .then(() => (asked = true));
    await eventually("the state waits to be stored", isStoring);
    expect(asked).toBe(false);
    await holder.query("commit");
    await question;
    expect((await api.state(threadId)).next).toEqual(["ask"]);
  } finally {
    await holder.end();
  }
});

test("a function that asks answers with its question alone, not with what it returned before, as LangGraph does", async () => {
  const threadId = await api.aThread();
  const run = async (body: object): Promise<unknown> =>
    (await api.post(`/threads/${threadId}/runs/wait`, { assistant_id: "functional", ...body })).body;
  const question = { __interrupt__: [{ id: expect.any(String), value: "Enough?" }] };
  expect(await run({ input: { value: 1 } })).toEqual(question);
  expect(await run({ command: { resume: "yes" } })).toEqual({ doubled: 2, answer: "yes" });
  expect(await run({ input: { value: 2 } })).toEqual(question);
  const [last] = await api.runs(threadId);
  expect((await api.get(`/threads/${threadId}/runs/${last!.run_id}/join`)).body).toEqual(question);
  expect((await api.state(threadId)).values).toEqual({ doubled: 2, answer: "yes" });
});

test("a run from a subgraph's checkpoint forks the thread as LangGraph does, at its newest state and before", async () => {
  const threadId = await api.aThread();
  const library = nested.builder.compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: threadId } };
  const input = { text: "a refund" };

  const runBoth = async (body: { input: object | null; checkpoint?: object }, at: object = {}) => {
    await api.post(`/threads/${threadId}/runs/wait`, { assistant_id: "nested-approval", ...body });
    await library.invoke(body.input as never, { configurable: { ...config.configurable, ...at } });
    const sources: unknown[] = [];
    for await (const { metadata } of library.getStateHistory(config)) sources.push(metadata?.source);
    expect((await api.history(threadId)).map(({ metadata }) => metadata["source"])).toEqual(sources);
    return sources;
  };
  await runBoth({ input });
  const { body: state } = await api.get<{ tasks: { state: { checkpoint: object } }[] }>(
    `/threads/${threadId}/state?subgraphs=true`,
  );
  const [task] = (await library.getState(config, { subgraphs: true })).tasks;
  const inside = (task?.state as StateSnapshot).config.configurable as object;
  const asked = { input: null, checkpoint: state.tasks[0]!.state.checkpoint };
  await runBoth(asked, inside);
  await runBoth({ input });
  expect(await runBoth(asked, inside)).toContain("fork");
});
