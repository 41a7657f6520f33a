/** A condition of the statement in write-statement.ts. */

import type { Queryable } from "../../../platform/database/database.ts";
import { statement, type Parameter } from "../../../platform/database/statement.ts";
import type { BatchParameter } from "./write-parameters.ts";

export type Fence = AttemptFence | { kind: "idle-thread" } | UnchangedThreadFence;

interface AttemptFence {
  kind: "attempt";
  runId: string;
  attempt: number;
}

/** A prune or a rollback may have freed parts of the state that the writer read. */
export interface UnchangedThreadFence {
  kind: "unchanged-thread";
  /** Each change of the thread's row increments its `version`. */
  threadVersion: string;
}

export interface AttemptSource extends AttemptFence {
  /**
   * The writer's last checkpoint that was committed without waiting for the disk. If the checkpoint is missing, the
   * database has crashed, and no row may refer to it or to earlier ones.
   */
  last: { checkpointNs: string; checkpointId: string } | undefined;
}

export const ATTEMPT_PARAMETERS = {
  runId: ["uuid", ({ runId }) => runId],
  attempt: ["integer", ({ attempt }) => attempt],
  lastCheckpointId: ["uuid", ({ last }) => last?.checkpointId ?? null],
  lastCheckpointNs: ["text", ({ last }) => last?.checkpointNs ?? null],
} satisfies Record<string, Parameter<AttemptSource>>;

export const VERSION_PARAMETERS = {
  threadVersion: ["bigint", ({ threadVersion }) => threadVersion],
} satisfies Record<string, Parameter<UnchangedThreadFence>>;

type AttemptSql = Readonly<Record<"threadId" | keyof typeof ATTEMPT_PARAMETERS, string>>;
type Sql<Name extends string> = Readonly<Record<BatchParameter | Name, string>>;

/*
 * With `for share` this statement waits for an earlier takeover and then finds no row; a later takeover waits for this
 * commit. `for key share` would not conflict; a heartbeat may wait 1 ms.
 */
export const HELD_BY_ATTEMPT = (sql: AttemptSql): string => `
  select 1 from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'
    and ${hasLastCheckpoint(sql)}
  for share`;

const hasLastCheckpoint = (sql: AttemptSql): string => `(${sql.lastCheckpointId} is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.lastCheckpointNs}
        and c.checkpoint_id = ${sql.lastCheckpointId}))`;

/*
 * Either this statement waits for a new run and finds the thread busy, or the run waits and starts from these writes.
 * `state_updated_at` shows the run that its snapshot may be older (engine/queue/sql/create-on-idle-thread.ts).
 */
export const HELD_WHILE_IDLE = (sql: Sql<never>): string => `
  update threadloom.threads set state_updated_at = clock_timestamp(), version = version + 1
  where thread_id = ${sql.threadId} and unfinished_runs = 0 returning 1`;

/* If the checkpoint exists, this statement was committed before, and only its answer was lost. */
export const HELD_WHILE_UNCHANGED = (sql: Sql<keyof typeof VERSION_PARAMETERS>): string => `
  update threadloom.threads set state_updated_at = clock_timestamp(), version = version + 1
  where thread_id = ${sql.threadId} and unfinished_runs = 0 and (version = ${sql.threadVersion} or exists (
    select from threadloom.checkpoints c
    where c.thread_id = ${sql.threadId} and c.checkpoint_id = any(${sql.checkpointIds})))
  returning version::text as version`;

const IS_HELD = statement(
  { threadId: "uuid", runId: "uuid", attempt: "integer" },
  (sql) => `select 1 from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'`,
);

export const isHeld = async (
  queryable: Queryable,
  attempt: { threadId: string; runId: string; attempt: number },
): Promise<boolean> => {
  return (await IS_HELD.query(queryable, attempt)).length > 0;
};
