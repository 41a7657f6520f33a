import type { Visibility } from "../../access/visibility.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { storedReceiver } from "../../platform/domain/webhook-address.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { RecordPushes } from "../queue/sql/ended.ts";
import { expectPushes } from "../queue/sql/expect-pushes.ts";
import { lockThreads } from "../queue/sql/lock-threads.ts";
import { decryptedPush, DUE_NOW, type StoredPush } from "./deliveries.ts";

/** Empty texts: not set. */
export interface PushConfig {
  id: string;
  url: string;
  token: string;
  scheme: string;
  credentials: string;
  /** The dialect in which the client set it. */
  version: string;
}

/** A task of a protocol: its thread and its first run. */
export interface PushedTask {
  threadId: string;
  firstRunId: string;
}

export interface SentPush extends PushConfig, PushedTask {}

export const PUSHES_PER_TASK = 10;

/** Run metadata is the client's: only `task_id` with the form of an id is one. */
const TASK_OF_RUN = `case when r.metadata ->> 'task_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (r.metadata ->> 'task_id')::uuid else r.run_id end`;

/** Any state → pending. Indexes: runs_pkey, deliveries_of_task. */
export const recordPushes: RecordPushes = (ended) => `record_pushes as (
  update threadloom.deliveries d set ${DUE_NOW}
  from ${ended} e join threadloom.runs r on r.thread_id = e.thread_id and r.run_id = e.run_id
  where d.thread_id = e.thread_id and d.task_run_id = ${TASK_OF_RUN})`;

const OF_TASK = { threadId: "uuid", firstRunId: "uuid" } as const;

/** Index: deliveries_of_task. */
const LIST = statement(
  OF_TASK,
  (sql) => `select delivery_id, configuration from threadloom.deliveries
  where thread_id = ${sql.threadId} and task_run_id = ${sql.firstRunId}
  order by created_at, delivery_id limit ${PUSHES_PER_TASK}`,
);

/** `sentRunId`: if this run has ended already, its end is sent. Index: runs_pkey. */
const INSERT = statement(
  { ...OF_TASK, pushId: "uuid", configuration: "text", receiver: "text", sentRunId: "uuid" },
  (
    sql,
  ) => `insert into threadloom.deliveries (delivery_id, kind, thread_id, task_run_id, configuration, caller, receiver, state)
  select ${sql.pushId}, 'push', r.thread_id, r.run_id, ${sql.configuration}, coalesce(r.caller, ''), ${sql.receiver},
    case when exists (select from threadloom.runs sent where sent.thread_id = ${sql.threadId}
      and sent.run_id = ${sql.sentRunId} and sent.status not in ('pending', 'running')) then 'pending' else 'idle' end
  from threadloom.runs r where r.thread_id = ${sql.threadId} and r.run_id = ${sql.firstRunId}
  returning state`,
);

/** Index: deliveries_pkey. */
const REPLACE = statement(
  { threadId: "uuid", pushId: "uuid", configuration: "text", receiver: "text" },
  (sql) => `update threadloom.deliveries set configuration = ${sql.configuration}, receiver = ${sql.receiver}
  where thread_id = ${sql.threadId} and delivery_id = ${sql.pushId}`,
);

/** Indexes: deliveries_pkey, threads_pkey. */
const DELETE = statement(
  { threadId: "uuid", pushId: "uuid", visible: "fragment" },
  (sql) => `delete from threadloom.deliveries d using threadloom.threads t
  where d.thread_id = ${sql.threadId} and d.delivery_id = ${sql.pushId} and t.thread_id = ${sql.threadId} and ${sql.visible}`,
);

export const toSentPush = (row: StoredPush): SentPush => ({
  ...(JSON.parse(row.configuration) as PushConfig),
  threadId: row.thread_id,
  firstRunId: row.task_run_id,
});

type StoredRow = Pick<StoredPush, "delivery_id" | "configuration">;

/** Push notifications of tasks: a row is a configuration and, once a run has ended, its delivery. */
export const createPushes = (database: Database) => {
  const { encryption } = database;
  const configOf = (row: StoredRow): PushConfig =>
    JSON.parse(decryptedPush(database, row).configuration) as PushConfig;
  const rowsOf = async (
    queryable: Queryable,
    { threadId, firstRunId }: PushedTask,
  ): Promise<{ pushId: string; config: PushConfig }[]> => {
    const rows = await LIST.query<StoredRow>(queryable, { threadId, firstRunId });
    return rows.map((row) => ({ pushId: row.delivery_id, config: configOf(row) }));
  };

  return {
    /** The oldest first. */
    async list(task: PushedTask): Promise<PushConfig[]> {
      return (await rowsOf(database, task)).map(({ config }) => config);
    },

    /**
     * Replaces the configuration with the same id. `sentRunId`: a run of the task whose end is sent although it may be
     * over. `full`: the task has `PUSHES_PER_TASK`; `gone`: there is no such task that the caller may change.
     */
    set: (
      { threadId, firstRunId }: PushedTask,
      config: PushConfig,
      visibility: Visibility<"threads">,
      sentRunId?: string,
    ): Promise<"idle" | "due" | "full" | "gone"> =>
      database.transaction(async (transaction) => {
        if (!(await lockThreads(transaction, visibility, [threadId])).has(threadId)) return "gone";
        const before = await rowsOf(transaction, { threadId, firstRunId });
        const former = before.find((each) => each.config.id === config.id);
        const pushId = former?.pushId ?? newId();
        const stored = {
          ...{ threadId, pushId, receiver: storedReceiver(encryption, config.url) },
          configuration: encryption.stored("deliveries", "configuration", JSON.stringify(config), {
            delivery_id: pushId,
          }),
        };
        if (former !== undefined) {
          await REPLACE.query(transaction, stored);
          return "idle";
        }
        if (before.length >= PUSHES_PER_TASK) return "full";
        const [row] = await INSERT.query<{ state: string }>(transaction, {
          ...stored,
          firstRunId,
          sentRunId: sentRunId ?? null,
        });
        if (row === undefined) return "gone";
        await expectPushes(transaction, threadId);
        return row.state === "pending" ? "due" : "idle";
      }),

    /** Nothing happens without such a configuration. */
    async remove(task: PushedTask, id: string, visibility: Visibility<"threads">): Promise<void> {
      const found = (await rowsOf(database, task)).find(({ config }) => config.id === id);
      if (found === undefined) return;
      const visible = visibility.on("t.metadata");
      await DELETE.query(database, { threadId: task.threadId, pushId: found.pushId, visible });
    },
  };
};

export type Pushes = ReturnType<typeof createPushes>;
