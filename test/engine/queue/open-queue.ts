import type { NewRun } from "../../../src/engine/queue/sql/create.ts";
import type { Database, Queryable } from "../../../src/platform/database/database.ts";
import { createRunEnds, type RunEnds } from "../../../src/engine/queue/ending.ts";
import { createQueue, type Queue } from "../../../src/engine/queue/queue.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";

/** A run's row for a test; omitted fields are those of a run that was just created. */
export interface QueuedRun {
  threadId?: string;
  status?: string;
  attempt?: number;
  lost?: number;
  graph?: string;
  workerId?: string;
  leaseFor?: number;
  updatedIn?: number;
  /** Seconds after the queue was opened, so two runs can have the same time. */
  availableIn?: number;
  createdIn?: number;
  cancel?: "interrupt" | "rollback";
  behind?: boolean;
  withThread?: boolean;
}

const INSERT = `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy,
    attempt, lost_attempts, worker_id, lease_until, available_at, created_at, updated_at, cancel_action, behind, delete_thread)
  values ($1, $2, $1, $3, $4, '{}', 'enqueue', $5, $6, $7, now() + make_interval(secs => $8),
    $15::timestamptz + make_interval(secs => $9), $15::timestamptz + make_interval(secs => $10),
    now() + make_interval(secs => $11), $12, $13, $14)`;

/** The assistant of all new runs; tests that need its row insert it. */
export const ASSISTANT = newId();

export const aNewRun = (threadId: string, given: Partial<NewRun> = {}): NewRun => ({
  runId: newId(),
  threadId,
  assistantId: ASSISTANT,
  multitaskStrategy: "enqueue",
  metadata: {},
  authUser: null,
  caller: null,
  config: {},
  context: {},
  keptConfig: undefined,
  webhook: null,
  kwargs: "{}",
  resumable: false,
  deleteThread: false,
  afterSeconds: 0,
  readerId: null,
  ...given,
});

/** Longer than any statement here waits, except for a lock that the test holds. */
const LOCK_TIMEOUT_MS = 5_000;

/** Fields that record when a row was last written. */
const PASSING = new Set(["updated_at", "updated_bin", "version"]);
const KEYS = { runs: "run_id", threads: "thread_id" };

export interface OpenQueue {
  database: Database;
  queue: Queue;
  ends: RunEnds;
  /** Of a database, or in a transaction of it. */
  queueOn(query: Pick<Database, "query">): Queue;
  aThread(): Promise<string>;
  aRun(run?: QueuedRun): Promise<{ threadId: string; runId: string; attempt: number }>;
  rows(): Promise<Map<string, Record<string, unknown>>>;
  /** The fields that `work` changes, by row id; null for a deleted row. New rows are left out. */
  changes(work: () => Promise<unknown>): Promise<Map<string, Record<string, unknown> | null>>;
  /** Whether another transaction could lock the row now. */
  isFree(table: "runs" | "threads", id: string): Promise<boolean>;
  /** Runs `meanwhile` while the row is locked and `work` waits for it. Then unlocks the row, and resolves with the result of `work`. */
  whileLocked<Result>(
    table: "runs" | "threads",
    id: string,
    work: () => Promise<Result>,
    meanwhile: (holder: Queryable) => Promise<void>,
  ): Promise<Result>;
  close(): Promise<void>;
}

/** The queue on a database of its own, without a worker, with `maxAttempts` 3 and the graphs `test` and `second`. */
export const openQueue = async (): Promise<OpenQueue> => {
  const fresh = await freshDatabase();
  const openedAt = new Date();
  let lastId = "";
  /** Ids that increase in order of creation, also within a millisecond. */
  const nextId = (): string => {
    let id = newId();
    while (id <= lastId) id = newId();
    return (lastId = id);
  };
  const database = openTestDatabase(
    `${fresh.connectionString}?options=-c%20lock_timeout%3D${LOCK_TIMEOUT_MS}`,
    { poolSize: 6 },
  );
  const queueOn = ({ query }: Pick<Database, "query">): Queue =>
    createQueue({ ...database, query }, { maxAttempts: 3, graphIds: ["test", "second"] });
  const aThread = async (): Promise<string> => {
    const threadId = newId();
    await database.query("insert into threadloom.threads (thread_id) values ($1)", [threadId]);
    return threadId;
  };
  const rowsNow = async (): Promise<Map<string, Record<string, unknown>>> => {
    const rows = await database.query<{ id: string; row: Record<string, unknown> }>(
      `select run_id as id, to_jsonb(r) as row from threadloom.runs r
       union all select thread_id, to_jsonb(t) from threadloom.threads t order by id`,
    );
    return new Map(rows.map(({ id, row }) => [id, row]));
  };
  return {
    database,
    queue: queueOn(database),
    ends: createRunEnds(database, {
      deleteRun: () => Promise.resolve(),
      deleteThread: () => Promise.resolve(),
    }),
    queueOn,
    aThread,
    async aRun(run = {}) {
      const runId = nextId();
      const threadId = run.threadId ?? (await aThread());
      const attempt = run.attempt ?? (run.status === "pending" ? 0 : 1);
      await database.query(INSERT, [
        runId,
        threadId,
        run.graph ?? "test",
        run.status ?? "running",
        attempt,
        run.lost ?? 0,
        run.workerId ?? null,
        run.leaseFor ?? null,
        run.availableIn ?? -1,
        run.createdIn ?? 0,
        run.updatedIn ?? 0,
        run.cancel ?? null,
        run.behind ?? false,
        run.withThread ?? false,
        openedAt,
      ]);
      if (!["success", "error"].includes(run.status ?? "running")) {
        await database.query(
          "update threadloom.threads set unfinished_runs = unfinished_runs + 1, status = 'busy' where thread_id = $1",
          [threadId],
        );
      }
      return { threadId, runId, attempt };
    },
    rows: rowsNow,
    async changes(work) {
      const before = await rowsNow();
      await work();
      const after = await rowsNow();
      const changed = new Map<string, Record<string, unknown> | null>();
      for (const [id, row] of before) {
        const now = after.get(id);
        const fields = Object.entries(now ?? {}).filter(
          ([name, value]) => !PASSING.has(name) && JSON.stringify(value) !== JSON.stringify(row[name]),
        );
        if (now === undefined) changed.set(id, null);
        else if (fields.length > 0) changed.set(id, Object.fromEntries(fields));
      }
      return changed;
    },
    async isFree(table, id) {
      const rows = await database.query(
        `select 1 from threadloom.${table} where ${KEYS[table]} = $1 for no key update skip locked`,
        [id],
      );
      return rows.length > 0;
    },
    async whileLocked(table, id, work, meanwhile) {
      const working = await database.transaction(async (holder) => {
        await holder.query(`select 1 from threadloom.${table} where ${KEYS[table]} = $1 for no key update`, [
          id,
        ]);
        const begun = work();
        begun.catch(() => undefined);
        await eventually("it waits", () => isSomeWaiting((text) => database.query(text)));
        await meanwhile(holder);
        return { begun };
      });
      return await working.begun;
    },
    async close() {
      await database.close();
      await fresh.drop();
    },
  };
};
