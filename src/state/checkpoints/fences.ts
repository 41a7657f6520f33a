/** The conditions of the statement in write.ts. */

import type { Queryable } from "../../platform/database/database.ts";
import { isRunningRun } from "../../platform/database/grouping.ts";
import { statement, type ComputedParameter, type List } from "../../platform/database/statement.ts";

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
} satisfies Record<string, ComputedParameter<AttemptSource>>;

type Sql<Name extends string> = Readonly<Record<"threadId" | Name, string>>;

/*
 * Each fence returns the threads that may be written to, with their `place` in the list.
 * With `for share` this statement waits for an earlier takeover and then finds no row; a later takeover waits for this
 * commit. `for key share` would not conflict; a heartbeat may wait 1 ms.
 */
export const HELD_BY_ATTEMPT = (sql: Sql<keyof typeof ATTEMPT_PARAMETERS>, { rows, isOne }: List): string => `
  select r.thread_id, place, null as version from ${rows} join threadloom.runs r on ${isRunningRun(sql, isOne)}
    and (${sql.lastCheckpointId} is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.lastCheckpointNs}
        and c.checkpoint_id = ${sql.lastCheckpointId}))
  for share of r${isOne ? "" : " skip locked"}`;

/*
 * Either this statement waits for a new run and finds the thread busy, or the run waits and starts from these writes.
 * `state_updated_at` shows the run that its snapshot may be older (`createOnIdleThread`).
 */
const writeIdle = (sql: Sql<never>, condition = ""): string => `
  update threadloom.threads set state_updated_at = clock_timestamp(), version = version + 1
  where thread_id = ${sql.threadId} and unfinished_runs = 0${condition}
  returning thread_id, 1 as place, version::text as version`;

export const HELD_WHILE_IDLE = (sql: Sql<never>): string => writeIdle(sql);

/* If the checkpoint exists, this statement was committed before, and only its answer was lost. */
export const HELD_WHILE_UNCHANGED = (sql: Sql<"threadVersion" | "checkpointIds">): string =>
  writeIdle(
    sql,
    ` and (version = ${sql.threadVersion} or exists (
    select from threadloom.checkpoints c
    where c.thread_id = ${sql.threadId} and c.checkpoint_id = any(${sql.checkpointIds})))`,
  );

export const HELD_FREELY = (sql: Sql<never>): string =>
  `select ${sql.threadId} as thread_id, 1 as place, null as version`;

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
