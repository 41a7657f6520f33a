/** Who may write checkpoints: the conditions under which the statement of write-statement.ts stores anything. */

import type { Queryable } from "../../../platform/database/database.ts";
import type { Parameter } from "../../../platform/database/named-parameters.ts";
import type { BatchParameter } from "./write-parameters.ts";

export type Fence = AttemptFence | IdleThreadFence | UnchangedThreadFence;

/** The attempt that holds the run may write. */
export interface AttemptFence {
  kind: "attempt";
  runId: string;
  attempt: number;
}

/** Whoever finds the thread without a run in progress may write. */
export interface IdleThreadFence {
  kind: "idle-thread";
}

/**
 * Whoever finds the thread without a run in progress and unchanged may write. What a prune or a rollback has freed
 * since the state was read must not be referred to.
 */
export interface UnchangedThreadFence {
  kind: "unchanged-thread";
  /** `version` of the thread's row, which each change of the row counts up. */
  threadVersion: string;
}

export interface AttemptSource extends AttemptFence {
  /**
   * The checkpoint that this writer committed last without waiting for the disk. If it isn't there, the database has
   * crashed since and lost it: nothing may refer to it, or to what came before.
   */
  last: { checkpointNs: string; checkpointId: string } | undefined;
}

/** What the fence of an attempt is given beside the batch. */
export const ATTEMPT_PARAMETERS = {
  runId: ["uuid", ({ runId }) => runId],
  attempt: ["integer", ({ attempt }) => attempt],
  lastCheckpointId: ["uuid", ({ last }) => last?.checkpointId ?? null],
  lastCheckpointNs: ["text", ({ last }) => last?.checkpointNs ?? null],
} satisfies Record<string, Parameter<AttemptSource>>;

/** What the fence of an unchanged thread is given beside the batch. */
export const VERSION_PARAMETERS = {
  threadVersion: ["bigint", ({ threadVersion }) => threadVersion],
} satisfies Record<string, Parameter<UnchangedThreadFence>>;

type Sql<Name extends string> = Readonly<Record<BatchParameter | Name, string>>;

/*
 * `for share` orders the statement against a takeover, which updates the row of the run. The statement waits for a
 * takeover that has begun, then reads the row afresh, and finds none: the attempt is over. A takeover that comes later
 * waits until this statement has committed, so the new attempt finds what it wrote. `for key share` would conflict with
 * neither. A heartbeat updates the row, too, and may wait for the millisecond that this statement takes.
 */
export const HELD_BY_ATTEMPT = (sql: Sql<keyof typeof ATTEMPT_PARAMETERS>): string => `
  select 1 from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and attempt = ${sql.attempt} and status = 'running'
    and (${sql.lastCheckpointId} is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.lastCheckpointNs}
        and c.checkpoint_id = ${sql.lastCheckpointId}))
  for share`;

/*
 * A run that is created meanwhile updates the thread's row. Either this statement waits for it and then finds the thread
 * busy, or the run waits for this statement and starts from what it wrote. The change of `state_updated_at` tells the
 * run that its own snapshot may be older than what was written (engine/queue/sql/create-on-idle-thread.ts).
 */
export const HELD_WHILE_IDLE = (sql: Sql<never>): string => `
  update threadloom.threads set state_updated_at = clock_timestamp(), version = version + 1
  where thread_id = ${sql.threadId} and unfinished_runs = 0 returning 1`;

/* If the checkpoint is there already, this very statement was committed before and only its answer lost. */
export const HELD_WHILE_UNCHANGED = (sql: Sql<keyof typeof VERSION_PARAMETERS>): string => `
  update threadloom.threads set state_updated_at = clock_timestamp(), version = version + 1
  where thread_id = ${sql.threadId} and unfinished_runs = 0 and (version = ${sql.threadVersion} or exists (
    select from threadloom.checkpoints c
    where c.thread_id = ${sql.threadId} and c.checkpoint_id = any(${sql.checkpointIds})))
  returning version::text as version`;

/** Whether an attempt still holds its run. */
export const isHeld = async (
  queryable: Queryable,
  { threadId, runId, attempt }: { threadId: string; runId: string; attempt: number },
): Promise<boolean> => {
  const rows = await queryable.query(
    "select 1 from threadloom.runs where thread_id = $1 and run_id = $2 and attempt = $3 and status = 'running'",
    [threadId, runId, attempt],
  );
  return rows.length > 0;
};
