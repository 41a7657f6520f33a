import type { Encryption, Queryable } from "../../../platform/database/database.ts";
import { encryptedParameter, statement } from "../../../platform/database/statement.ts";
import type { AttemptSelector, RunOutcome } from "../attempts.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import { recorded, type RecordEnds } from "./ended.ts";

interface Finish {
  attempt: AttemptSelector;
  outcome: RunOutcome;
  lastCheckpoint: { checkpointNs: string; checkpointId: string } | undefined;
}

const errorOf = ({ outcome: { error } }: Finish): string | null =>
  error === null ? null : JSON.stringify(error);
const ofRun = ({ attempt }: Finish) => ({ run_id: attempt.runId });
const ofThread = ({ attempt }: Finish) => ({ thread_id: attempt.threadId });

const FINISH_PARAMETERS = {
  threadId: ["uuid", ({ attempt }: Finish) => attempt.threadId],
  runId: ["uuid", ({ attempt }: Finish) => attempt.runId],
  attempt: ["integer", ({ attempt }: Finish) => attempt.attempt],
  status: ["text", ({ outcome }: Finish) => outcome.status],
  error: encryptedParameter("runs", "error", errorOf, ofRun),
  threadError: [
    "jsonb",
    () => null,
    (finish: Finish, encryption: Encryption) =>
      encryption.stored("threads", "error", errorOf(finish), ofThread(finish)),
  ],
  /** Null: the thread's status does not change. */
  threadStatus: [
    "text",
    ({ outcome: { threadStatus } }: Finish) => (threadStatus === "unchanged" ? null : threadStatus),
  ],
  // Interrupts may contain NUL, which jsonb cannot hold; the checkpoint has the exact value.
  interrupts: encryptedParameter(
    "threads",
    "interrupts",
    ({ outcome }: Finish) => outcome.interrupts,
    ofThread,
  ),
  unlogged: ["boolean", ({ outcome }: Finish) => outcome.unlogged ?? false],
  checkpointId: ["uuid", ({ lastCheckpoint }: Finish) => lastCheckpoint?.checkpointId ?? null],
  checkpointNs: ["text", ({ lastCheckpoint }: Finish) => lastCheckpoint?.checkpointNs ?? null],
} as const;

/** For runs with a webhook. */
const VALUES_PARAMETERS = {
  ...FINISH_PARAMETERS,
  finalValues: encryptedParameter(
    "webhook_deliveries",
    "final_values",
    ({ outcome }: Finish) => outcome.final?.values ?? null,
    ofThread,
  ),
  valuesOmitted: ["boolean", ({ outcome }: Finish) => outcome.final?.omitted ?? false],
} as const;

/**
 * running → success, error, timeout or interrupted; locks the thread first. While other runs wait the thread
 * stays `busy`, and `resting_status` keeps its later status. Indexes: threads_pkey, runs_pkey,
 * checkpoints_pkey.
 */
const finishText = (
  sql: Readonly<Record<keyof typeof FINISH_PARAMETERS, string>>,
  recording: string,
): string => `with thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId} for no key update),
ended as (
  update threadloom.runs r set status = ${sql.status}, error = ${sql.error}, lease_until = null, updated_at = now(),
    unlogged_attempt = case when ${sql.unlogged} and r.reader_id <> r.worker_id then r.attempt else r.unlogged_attempt end
  from thread where r.thread_id = thread.thread_id and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt}
    and r.status = 'running'
    and (${sql.checkpointId} is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs}
        and c.checkpoint_id = ${sql.checkpointId}))
  returning ${ENDED_COLUMNS}, r.status, r.error)${recording}
update threadloom.threads t set unfinished_runs = t.unfinished_runs - 1,
  status = case when t.unfinished_runs > 1 then 'busy' else coalesce(${sql.threadStatus}, t.resting_status) end,
  resting_status = coalesce(${sql.threadStatus}, t.resting_status),
  interrupts = case when ${sql.threadStatus} is null then t.interrupts else ${sql.interrupts} end,
  error = case when ${sql.threadStatus} is null then t.error else coalesce(${sql.threadError}, ${sql.error}) end, updated_at = now(),
  state_updated_at = case when ${sql.threadStatus} is null then t.state_updated_at else now() end,
  expires_at = now() + t.ttl_minutes * interval '1 minute', version = t.version + 1
from ended where t.thread_id = ${sql.threadId}
returning t.unfinished_runs`;

const FINISH = statement(FINISH_PARAMETERS, (sql) => finishText(sql, ""));

export const finishing = (record: RecordEnds | undefined) => {
  const finishWithValues =
    record && statement(VALUES_PARAMETERS, (sql) => finishText(sql, recorded(record, sql)));

  /**
   * `waiting`: pending runs of the thread. Undefined if the attempt no longer holds the run, or if the
   * database lost `lastCheckpoint` in a crash.
   */
  return async (queryable: Queryable, finish: Finish): Promise<{ waiting: number } | undefined> => {
    const statement = finish.outcome.final === undefined ? FINISH : (finishWithValues ?? FINISH);
    const rows = await statement.query<{ unfinished_runs: number }>(queryable, finish);
    return rows[0] && { waiting: rows[0].unfinished_runs };
  };
};
