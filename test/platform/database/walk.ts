import { randomUUID } from "node:crypto";
import pg from "pg";
import { createQueue } from "../../../src/engine/queue/queue.ts";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/**
 * Records the text of all statements on the server's tables that this process sends, including Kysely's, by database: parts of other test
 * files may still run in this process.
 */
const recordStatements = () => {
  const textsOf = new Map<string, Set<string>>();
  const { prototype } = pg.Client;
  const query = Object.getOwnPropertyDescriptor(prototype, "query")!;
  const original = query.value as (...given: unknown[]) => unknown;
  Object.defineProperty(prototype, "query", {
    ...query,
    value(this: pg.Client, ...given: unknown[]) {
      const [first] = given;
      const text = typeof first === "string" ? first : (first as { text?: unknown } | undefined)?.text;
      if (typeof text === "string" && /"?threadloom"?\."?[a-z]/.test(text)) {
        const database = this.database ?? "";
        textsOf.set(database, (textsOf.get(database) ?? new Set()).add(text));
      }
      return original.apply(this, given);
    },
  });
  return { textsOf, end: () => Object.defineProperty(prototype, "query", query) };
};

/**
 * Uses all functions of two servers on one database, and simulates states that only crashes cause. Returns the statements, and the
 * database, which the caller drops.
 */
export const walkThroughAll = async () => {
  const recorder = recordStatements();
  const one = await startTestServer({ jobsPerWorker: 2 });
  try {
    const other = await startTestServer({ connectionString: one.connectionString, jobsPerWorker: 2 });
    try {
      const [api, elsewhere] = [apiOf(one), apiOf(other)];
      const agent = { assistant_id: "agent", input: saying("hello") };
      const sleeping = { assistant_id: "sleep", input: { milliseconds: 1_000 } };

      const threadId = await api.aThread({
        metadata: { of: "walk" },
        ttl: { ttl: 60, strategy: "keep_latest" },
      });
      await api.aFinishedRun(threadId, agent);
      await api.aFinishedRun(threadId, { ...agent, config: { configurable: { kept: "here" } } });
      await api.post("/runs/wait", agent);
      await api.post(`/threads/${randomUUID()}/runs/wait`, { ...agent, if_not_exists: "create" });
      const streamed = await api
        .post(`/threads/${threadId}/runs/stream`, { ...agent, stream_resumable: true })
        .catch(() => undefined);
      void streamed;
      const runs = await api.runs(threadId);
      const lastRun = runs[0]!.run_id;
      await elsewhere.get(`/threads/${threadId}/runs/${lastRun}/stream`).catch(() => undefined);
      await elsewhere.join(threadId, lastRun);
      await api.run(threadId, lastRun);
      await api.post("/runs/batch", [agent, agent]);
      await api.post("/runs", agent);

      for (const strategy of ["enqueue", "interrupt", "rollback", "reject"]) {
        const busy = await api.aThread();
        const first = await api.aRun(busy, sleeping);
        await api.aRun(busy, { ...sleeping, multitask_strategy: "enqueue" });
        await api.post(`/threads/${busy}/runs`, { ...agent, multitask_strategy: strategy });
        const later = await api.post<{ run_id: string }>(`/threads/${busy}/runs`, {
          ...agent,
          after_seconds: 100,
        });
        void elsewhere.join(busy, first.run_id).catch(() => undefined);
        void elsewhere.get(`/threads/${busy}/runs/${first.run_id}/stream`).catch(() => undefined);
        if (later.status === 200) await api.cancel(busy, later.body.run_id, "wait=0&action=rollback");
        await api.post("/runs/cancel", { thread_id: busy, run_ids: [first.run_id] });
        await api.post("/runs/cancel?action=rollback", { status: "all" });
        await api.untilQuiet(busy);
      }

      const state = await api.state(threadId);
      await api.history(threadId);
      await api.post(`/threads/${threadId}/state`, { values: saying("changed") });
      await api.get(`/threads/${threadId}/state/${state.checkpoint?.checkpoint_id}`);
      await api.post(`/threads/${threadId}/state/checkpoint`, { checkpoint: state.checkpoint });
      const copy = (await api.post<{ thread_id: string }>(`/threads/${threadId}/copy`)).body.thread_id;
      await api.get(`/threads/${copy}/storage`);
      const approval = await api.aThread();
      await api
        .aFinishedRun(approval, { assistant_id: "approval", input: saying("please") })
        .catch(() => undefined);
      await api.post("/threads/prune", { thread_ids: [copy], strategy: "keep_latest" });
      await api.post("/threads/prune", { thread_ids: [copy], strategy: "delete" });

      await api.patch(`/threads/${threadId}`, { metadata: { more: 1 }, ttl: 5 });
      for (const filter of [
        {},
        { metadata: { of: "walk" } },
        { status: "idle" },
        { status: "busy" },
        { status: "interrupted" },
        { values: { messages: [] } },
        { ids: [threadId] },
        { sort_by: "updated_at", sort_order: "asc" },
        { sort_by: "status" },
      ]) {
        await api.post("/threads/search", filter);
        await api.post("/threads/count", filter);
      }
      for (const filter of [{}, { status: "success" }, { metadata: { a: 1 } }, { thread_id: threadId }])
        await api.post("/runs/search", filter);
      await api.get(`/threads/${threadId}/runs?limit=5&status=success`);
      await fetch(`${one.url}/metrics`);
      await api.get("/info");
      await api.remove(`/threads/${threadId}/runs/${lastRun}`);
      await api.remove(`/threads/${threadId}`);

      // Crons, one of each kind; each is due once.
      const schedule = "0 0 1 1 *";
      const crons = [
        await api.post<{ cron_id: string }>("/runs/crons", { ...agent, schedule }),
        await api.post<{ cron_id: string }>(`/threads/${await api.aThread()}/runs/crons`, {
          ...agent,
          schedule,
        }),
      ].map(({ body }) => body.cron_id);
      await query(one, "update threadloom.crons set next_run_date = now()");
      for (const cronId of crons) {
        await api.patch(`/runs/crons/${cronId}`, {});
        await eventually("the cron was run", async () => {
          const { body } = await api.get<{ next_run_date: string }>(`/runs/crons/${cronId}`);
          return Date.parse(body.next_run_date) > Date.now();
        });
        await api.post("/runs/crons/search", { thread_id: threadId, metadata: { a: 1 } });
        await api.post("/runs/crons/count", { assistant_id: "agent" });
        await api.remove(`/runs/crons/${cronId}`);
      }

      const database = openTestDatabase(one.connectionString, { poolSize: 2, applicationName: "walk" });
      try {
        const queue = createQueue(database, { maxAttempts: 3, graphIds: ["agent"] });
        const nobody = { threadId: randomUUID(), runId: randomUUID(), attempt: 1 };
        await queue.claim(randomUUID(), 10, 1);
        await queue.renew([nobody], 10);
        await queue.handBack(nobody);
        await queue.giveUpLease(nobody);
        await queue.endedAs(nobody, "success");
        await queue.listUnknown(randomUUID(), []);
        await queue.requeueLost(10);
        await queue.listAbandoned(10);
        await queue.putBehind();
        await queue.advanceForgotten();
      } finally {
        await database.close();
      }
      await eventually("no run is left", async () => {
        const busy = await api.post<unknown[]>("/threads/search", { status: "busy" });
        return busy.body.length === 0;
      });
    } finally {
      await other.close();
    }
  } catch (error) {
    recorder.end();
    await one.close();
    throw error;
  }
  recorder.end();
  return {
    statements: [...(recorder.textsOf.get(new URL(one.connectionString).pathname.slice(1)) ?? [])],
    connectionString: one.connectionString,
    close: () => one.close(),
  };
};
