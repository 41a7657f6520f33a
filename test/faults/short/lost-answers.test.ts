import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { apiOf, textsOf, type Api, type Result } from "../../helpers/api.ts";
import { eventually } from "../../helpers/conditions.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { startTcpProxy, type ProxiedConnection, type TcpProxy } from "../../helpers/tcp-proxy.ts";

const LEASE_SECONDS = 600;

let database: FreshDatabase;
let proxy: TcpProxy;
let server: TestServer;
let api: Api;

beforeAll(async () => {
  database = await freshDatabase();
  proxy = await startTcpProxy(database.connectionString);
  // No lease may end within the test, so no run is taken over.
  server = await startTestServer({ connectionString: proxy.connectionString, leaseSeconds: LEASE_SECONDS });
  api = apiOf(server);
});
afterAll(async () => {
  await server?.close();
  await proxy?.close();
  await database?.drop();
});

const ofRequests = ({ application }: ProxiedConnection): boolean => application === "threadloom";

interface StoredRun {
  status: string;
  attempt: number;
}
const runsOf = (threadId: string): Promise<StoredRun[]> =>
  query(database, "select status, attempt from threadloom.runs where thread_id = $1", [threadId]);

/** Creates the function `linger` for triggers: their statement waits until `go` is called. */
const startLingering = async (): Promise<{ isWaited(): Promise<boolean>; go(): Promise<void> }> => {
  const holder = new pg.Client({ connectionString: database.connectionString });
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query("select pg_advisory_lock(17)");
  await holder.query(
    `create function linger() returns trigger language plpgsql as
     'begin perform pg_advisory_xact_lock(17); return new; end'`,
  );
  return {
    async isWaited() {
      const { rowCount } = await holder.query(
        "select from pg_locks where locktype = 'advisory' and objid = 17 and not granted",
      );
      return rowCount !== 0;
    },
    go: async () => void (await holder.query("select pg_advisory_unlock(17)")),
  };
};

describe("a connection that dies between commit and answer", () => {
  test("does not double a run that is being created: its caller gets it, executed once", async () => {
    const threadId = await api.aThread();
    expect(proxy.loseNextAnswer(ofRequests)).toBeGreaterThan(0);
    const answer = await api.post<Result>(`/threads/${threadId}/runs/wait`, {
      assistant_id: "two-step",
      input: { messages: [] },
    });
    expect(answer.status).toBe(200);
    expect(textsOf(answer.body.messages)).toEqual(["first", "second"]);
    expect(await runsOf(threadId)).toEqual([{ status: "success", attempt: 1 }]);
  });

  test("does not make `reject` refuse a request because of its own run", async () => {
    const threadId = await api.aThread();
    proxy.loseNextAnswer(ofRequests);
    const answer = await api.post(`/threads/${threadId}/runs`, {
      assistant_id: "sleep",
      input: { messages: [], milliseconds: 100 },
      multitask_strategy: "reject",
    });
    expect(answer.status).toBe(200);
    await api.untilQuiet(threadId);
    expect(await runsOf(threadId)).toEqual([{ status: "success", attempt: 1 }]);
  });

  test.each(["/runs/wait", "/threads/{id}/runs/wait"])(
    "does not lose the result of a run whose end was stored (%s)",
    async (path) => {
      const threadId = await api.aThread();
      const waiting = api.post<Result>(path.replace("{id}", threadId), {
        assistant_id: "gate",
        input: { label: path },
      });
      await eventually("the run is at its gate", () => isAtGate(path));
      expect(proxy.loseNextAnswer(ofRequests)).toBeGreaterThan(0);
      openGate(path);
      const { body } = await waiting;
      expect(body.__error__).toBeUndefined();
      expect(body["done"]).toEqual([path]);
    },
  );

  test("does not cost a run that is being claimed its attempt, or the time of a lease", async () => {
    const lingering = await startLingering();
    await query(
      database,
      `create trigger linger before update on threadloom.runs for each row
       when (old.status = 'pending' and new.status = 'running') execute function linger()`,
    );
    onTestFinished(async () => {
      await query(database, "drop function linger cascade");
    });
    const creator = await startTestServer({
      connectionString: database.connectionString,
      role: "api",
      leaseSeconds: LEASE_SECONDS,
    });
    onTestFinished(() => creator.close());
    const threadId = await api.aThread();
    const run = await apiOf(creator).aRun(threadId, { assistant_id: "two-step", input: { messages: [] } });
    await eventually("the run is being claimed", lingering.isWaited);
    expect(proxy.loseNextAnswer(ofRequests)).toBeGreaterThan(0);
    await lingering.go();
    await apiOf(creator).untilRunIs(threadId, run.run_id, "success");
    expect(await runsOf(threadId)).toEqual([{ status: "success", attempt: 1 }]);
  });

  test("does not apply an update of a state twice", async () => {
    const threadId = await api.aThread({ metadata: { graph_id: "counter" } });
    await api.aFinishedRun(threadId, { assistant_id: "counter", input: { messages: [] } });
    const before = await api.history(threadId);
    const lingering = await startLingering();
    await query(
      database,
      "create trigger linger before insert on threadloom.checkpoints for each row execute function linger()",
    );
    onTestFinished(async () => {
      await query(database, "drop function if exists linger cascade");
    });
    const update = api.post(`/threads/${threadId}/state`, { values: { count: 1 }, as_node: "increment" });
    await eventually("the update is being stored", lingering.isWaited);
    expect(proxy.loseNextAnswer(ofRequests)).toBeGreaterThan(0);
    await lingering.go();
    await query(database, "drop function linger cascade");
    expect((await update).status).toBe(200);
    const after = await api.history(threadId);
    expect(after.slice(1)).toEqual(before);
    expect(after[0]?.values["count"]).toBe(Number(before[0]?.values["count"]) + 1);
  });

  test("does not double the runs of a batch", async () => {
    const lingering = await startLingering();
    await query(
      database,
      `create constraint trigger linger after insert on threadloom.runs deferrable initially deferred
       for each row when (new.metadata ? 'lingers') execute function linger()`,
    );
    onTestFinished(async () => {
      await query(database, "drop function linger cascade");
    });
    const body = { assistant_id: "two-step", input: { messages: [] }, on_completion: "keep" };
    const batch = api.post<{ run_id: string; metadata: object }[]>("/runs/batch", [
      { ...body, metadata: { lingers: true, batch: 1 } },
      { ...body, metadata: { batch: 2 } },
    ]);
    await eventually("the batch is being committed", lingering.isWaited);
    expect(proxy.loseNextAnswer(ofRequests)).toBeGreaterThan(0);
    await lingering.go();
    const answer = await batch;
    expect(answer.status).toBe(200);
    expect(answer.body.map((run) => run.metadata)).toEqual(
      [{ lingers: true, batch: 1 }, { batch: 2 }].map((metadata) => expect.objectContaining(metadata)),
    );
    const stored = await query<{ run_id: string }>(
      database,
      "select run_id from threadloom.runs where metadata ? 'batch'",
    );
    // Runs on threads of their own are stored in the order of the threads' ids, which is the order of all locks.
    expect(new Set(stored.map((run) => run.run_id))).toEqual(new Set(answer.body.map((run) => run.run_id)));
    expect(stored).toHaveLength(2);
  });
});
