import { afterEach, describe, expect, test } from "vitest";
import { apiOf, type Refusal } from "../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { dataOf, openStream, readStream } from "../helpers/server-sent-events.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";

const servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0).reverse()) await server.close();
});
const start = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const server = await startTestServer({ graphConfigFile: ENGINE_GRAPHS, ...options });
  servers.push(server);
  return server;
};
/** Far less than a graceful end would take, and far more than a busy machine needs. */
const PROMPTLY_MS = 30_000;
const QUICK = { leaseSeconds: 1, heartbeatSeconds: 0.25, sweepSeconds: 0.2 };

/** Long enough that no other server takes the run from its recorded owner. */
const TAKE_OVER = `update threadloom.runs set attempt = attempt + 1, worker_id = 'dead0000-0000-4000-8000-000000000000',
  lease_until = now() + interval '1 hour' where run_id = $1`;

const rowsOf = async (server: TestServer, runId: string) => {
  const [row] = await query<{ state: object }>(
    server,
    `select jsonb_build_object(
       'run', (select to_jsonb(r) - 'lease_until' from threadloom.runs r where run_id = $1),
       'events', (select count(*) from threadloom.run_events where run_id = $1),
       'checkpoints', (select count(*) from threadloom.checkpoints where run_id = $1),
       'writes', (select count(*) from threadloom.checkpoint_writes w join threadloom.checkpoints c using (thread_id, checkpoint_ns, checkpoint_id)
                  where c.run_id = $1)) as state`,
    [runId],
  );
  return row?.state;
};

describe("a lease", () => {
  test("is renewed by its heartbeat however long the run takes, while another process looks for lost ones", async () => {
    const options = { leaseSeconds: 5, heartbeatSeconds: 0.25, sweepSeconds: 0.2 };
    const server = await start(options);
    await start({ ...options, connectionString: server.connectionString });
    const api = apiOf(server);
    const threadId = await api.aThread();
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "gate", input: { label: "kept" } },
    });
    await eventually("its first lease would be over, and have been found out", async () => {
      const over = `select 1 from threadloom.runs where thread_id = $1
        and started_at + ($2::float8 + 5 * $3::float8) * interval '1 second' < now()`;
      const found = await query(server, over, [threadId, options.leaseSeconds, options.sweepSeconds]);
      return found.length > 0;
    });
    openGate("kept");
    const events = await stream.rest();
    expect(dataOf(events, "metadata")).toEqual([{ run_id: expect.any(String), attempt: 1 }]);
    const rows = await query(server, "select status, attempt from threadloom.runs where thread_id = $1", [
      threadId,
    ]);
    expect(rows).toEqual([{ status: "success", attempt: 1 }]);
  });

  test("that is lost makes the attempt powerless: it writes no checkpoint, no event, no end", async () => {
    const server = await start({ heartbeatSeconds: 4 });
    const api = apiOf(server);
    const run = await api.aRun(await api.aThread(), {
      assistant_id: "gate",
      input: { label: "fenced" },
      stream_resumable: true,
      stream_mode: ["custom", "values"],
    });
    await eventually("the run is at its gate", () => isAtGate("fenced"));
    await eventually("its events are logged", async () => {
      const rows = await query(server, "select 1 from threadloom.run_events where run_id = $1", [run.run_id]);
      return rows.length >= 3;
    });
    await query(server, TAKE_OVER, [run.run_id]);
    const before = await rowsOf(server, run.run_id);
    openGate("fenced");
    await eventually("the attempt noticed", () =>
      server.lines.some(
        (line) =>
          line.includes(run.run_id) && line.includes("the attempt ended; the run continues elsewhere"),
      ),
    );
    expect(await rowsOf(server, run.run_id)).toEqual(before);
    expect(before).toMatchObject({ run: { status: "running", attempt: 2 } });
  });

  test("that is lost stops the work at the next heartbeat, and cuts off the readers, who find the run elsewhere", async () => {
    const server = await start({ heartbeatSeconds: 0.2 });
    const api = apiOf(server);
    const threadId = await api.aThread();
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "gate", input: { label: "taken" }, stream_mode: "custom" },
    });
    await stream.until(({ event }) => event === "custom");
    const [run] = await api.runs(threadId);
    await query(server, TAKE_OVER, [run?.run_id]);
    await expect(stream.rest()).rejects.toThrow();
    expect(isAtGate("taken")).toBe(false);
    // Simulates the immediate death of the process that took the run.
    await query(server, "update threadloom.runs set lease_until = now() - interval '1 s' where run_id = $1", [
      run?.run_id,
    ]);
    await eventually("a third attempt is at its gate", () => isAtGate("taken"));
    const joined = await openStream(`${server.url}/threads/${threadId}/runs/${run?.run_id}/stream`, {
      headers: { "last-event-id": String(stream.seen.at(-1)?.id) },
    });
    openGate("taken");
    const events = await joined.rest();
    for (const { id } of events) expect(id).toBeGreaterThan(stream.seen.at(-1)?.id ?? 0);
    expect(dataOf(events, "custom").at(-1)).toEqual({ opened: "taken" });
    expect(await api.join(threadId, run?.run_id ?? "")).toMatchObject({ done: ["taken"] });
  });

  test("of a run with an unfinished cancel is ended by the sweep", async () => {
    const server = await start({ ...QUICK, role: "api" });
    const api = apiOf(server);
    const before = await api.aThread();
    for (const action of ["interrupt", "rollback"]) {
      const run = await api.aRun(before, { assistant_id: "gate", input: { label: "orphan" } });
      // A worker claimed the run, was asked to cancel it, and died.
      await query(
        server,
        `update threadloom.runs set status = 'running', attempt = 1, worker_id = 'dead0000-0000-4000-8000-000000000000', cancel_action = $2,
           lease_until = now() - interval '1 s' where run_id = $1`,
        [run.run_id, action],
      );
      if (action === "interrupt") await api.untilRunIs(before, run.run_id, "interrupted");
      else {
        await eventually("the run is gone", async () => {
          const answer = await api.get<Refusal>(`/threads/${before}/runs/${run.run_id}`);
          return answer.status === 404;
        });
      }
      expect((await api.thread(before)).status).toBe("idle");
    }
  });

  test("of a run without attempts left ends the run with an error, for all waiting callers", async () => {
    const server = await start({ ...QUICK, role: "api", maxAttempts: 2 });
    const api = apiOf(server);
    const threadId = await api.aThread();
    const stream = openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "gate", input: { label: "given up" } },
    }).then((opened) => opened.rest());
    const run = await eventually("the run is stored", async () => (await api.runs(threadId))[0]);
    const joined = api.join(threadId, run.run_id);
    await query(
      server,
      `update threadloom.runs set status = 'running', attempt = 2, lost_attempts = 1, worker_id = 'dead0000-0000-4000-8000-000000000000',
         lease_until = now() - interval '1 s' where run_id = $1`,
      [run.run_id],
    );
    const failure = { error: expect.any(String), message: expect.stringContaining("2 attempts") };
    expect((await joined).__error__).toEqual(failure);
    expect(dataOf(await stream, "error")).toEqual([failure]);
    expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "error" });
    expect(await api.thread(threadId)).toMatchObject({ status: "error", error: failure });
    const waited = await api.aRun(threadId, { assistant_id: "counter", input: {} });
    expect(waited.status).toBe("pending");
  });
});

describe("a run's time", () => {
  test.each(["sleep", "stubborn"])("is limited: %s ends as timeout with an error", async (assistant_id) => {
    const server = await start({ runTimeoutSeconds: 1.5 });
    const api = apiOf(server);
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id, input: { milliseconds: 9_000 }, stream_mode: "custom" },
    });
    const failure = { error: "RunTimeoutError", message: expect.stringContaining("1.5 seconds") };
    expect(dataOf(events, "error")).toEqual([failure]);
    const [run] = await api.runs(threadId);
    expect(run).toMatchObject({ status: "timeout" });
    expect(await api.join(threadId, run?.run_id ?? "")).toEqual({ __error__: failure });
    expect(await api.thread(threadId)).toMatchObject({ status: "error" });
    expect(await api.aFinishedRun(threadId, { assistant_id: "counter", input: {} })).toMatchObject({
      count: 1,
    });
  });
});

describe("a server that stops", () => {
  test("hands its runs to another one, and cuts off readers and waiting callers", async () => {
    const { connectionString, drop } = await freshDatabase();
    const options = { graphConfigFile: ENGINE_GRAPHS, connectionString, shutdownGraceSeconds: 0.2 };
    const server = await startTestServer(options);
    const replica = await startTestServer(options);
    const api = apiOf(server);
    const other = apiOf(replica);
    let stopped = false;
    try {
      const threadId = await api.aThread();
      const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
        body: { assistant_id: "hesitant", input: {}, stream_mode: "custom", stream_resumable: true },
      });
      await stream.until(({ event }) => event === "custom");
      const [run] = await api.runs(threadId);
      const runId = run?.run_id ?? "";
      // Uses the same graph, because the thread is read through the graph of its newest run.
      const waiting = await api.aRun(threadId, { assistant_id: "hesitant", input: {}, after_seconds: 3_600 });
      const joined = fetch(`${server.url}/threads/${threadId}/runs/${runId}/join`).then((r) => r.text());
      const pending = await openStream(`${server.url}/threads/${threadId}/runs/${waiting.run_id}/stream`);
      const cut = Promise.all([
        expect(stream.rest()).rejects.toThrow(),
        // The join is cut off; or answered, if the other server finishes while this one still answers.
        joined.then(
          (answer) => expect(JSON.parse(answer)).toMatchObject({ first: [1], second: [2] }),
          (error: unknown) => expect(error).toBeInstanceOf(TypeError),
        ),
        expect(pending.rest()).rejects.toThrow(),
      ]);
      const begin = performance.now();
      await server.close();
      stopped = true;
      expect(performance.now() - begin).toBeLessThan(PROMPTLY_MS);
      await cut;
      expect(await other.join(threadId, runId)).toMatchObject({ first: [1], second: [2] });
      const last = stream.seen.at(-1)?.id ?? 0;
      const rest = await readStream(`${replica.url}/threads/${threadId}/runs/${runId}/stream`, {
        headers: { "last-event-id": String(last) },
      });
      expect(dataOf(rest, "metadata")).toEqual([{ run_id: runId, attempt: 2 }]);
      expect(dataOf(rest, "custom")).toEqual([{ second: 2 }]);
      for (const { id } of rest) expect(id).toBeGreaterThan(last);
    } finally {
      if (!stopped) await server.close();
      await replica.close();
      await drop();
    }
  });
});
