import type { Database, Encryption, Queryable } from "../../../platform/database/database.ts";
import { encryptedParameter, statement, type Statement } from "../../../platform/database/statement.ts";
import type { AttemptSelector, RunOutcome } from "../attempts.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import { recorded, withPushes, type RecordEnds, type RecordPushes } from "./ended.ts";
import { lockThread } from "./lock-threads.ts";
import { recordsParameters, spansParameters, storeRecords, storeSpans } from "./store-records.ts";

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
    "json",
    () => null,
    (finish: Finish, encryption: Encryption) =>
      encryption.stored("threads", "error", errorOf(finish), ofThread(finish)),
  ],
  /** Null: the thread's status does not change. */
  threadStatus: [
    "text",
    ({ outcome: { threadStatus } }: Finish) => (threadStatus === "unchanged" ? null : threadStatus),
  ],
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

const recordsOf = ({ outcome }: Finish) => outcome.records;
const attemptOf = ({ attempt }: Finish) => attempt;

/** For runs without models. */
const SPANS_PARAMETERS = { ...FINISH_PARAMETERS, ...spansParameters(recordsOf, attemptOf) } as const;
/** For runs that used models. */
const RECORDS_PARAMETERS = { ...FINISH_PARAMETERS, ...recordsParameters(recordsOf, attemptOf) } as const;

/** For runs with a webhook. */
const VALUES_PARAMETERS = {
  ...RECORDS_PARAMETERS,
  finalValues: encryptedParameter(
    "deliveries",
    "final_values",
    ({ outcome }: Finish) => outcome.final?.values ?? null,
    ofThread,
  ),
  valuesOmitted: ["boolean", ({ outcome }: Finish) => outcome.final?.omitted ?? false],
} as const;

type Sql = Readonly<Record<keyof typeof FINISH_PARAMETERS, string>>;
type RecordsSql = Readonly<Record<keyof typeof RECORDS_PARAMETERS, string>>;

/**
 * running → success, error, timeout or interrupted; locks the thread first. While other runs wait the thread
 * stays `busy`, and `resting_status` keeps its later status. Indexes: threads_pkey, runs_pkey,
 * checkpoints_pkey.
 */
const finishText = (sql: Sql, recording = "", condition = ""): string => `with thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId} ${condition}for no key update),
ended as (
  update threadloom.runs r set status = ${sql.status}, error = ${sql.error}, lease_until = null, updated_at = now(),
    unlogged_attempt = case when ${sql.unlogged} and r.reader_id <> r.worker_id then r.attempt else r.unlogged_attempt end
  from thread where r.thread_id = ${sql.threadId} and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt}
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
returning t.thread_id, t.unfinished_runs`;

const storing = (sql: RecordsSql): string => `,\n${storeRecords(sql)}`;

/** Only statements with `withPushes` end runs of threads with push notifications. */
const WITHOUT_PUSHES = "and pushes is null ";
const FINISH = statement(FINISH_PARAMETERS, (sql) => finishText(sql, "", WITHOUT_PUSHES));
const FINISH_TRACED = statement(SPANS_PARAMETERS, (sql) =>
  finishText(sql, `,\n${storeSpans(sql)}`, WITHOUT_PUSHES),
);
const FINISH_RECORDED = statement(RECORDS_PARAMETERS, (sql) => finishText(sql, storing(sql), WITHOUT_PUSHES));

interface FinishedRow {
  thread_id: string;
  unfinished_runs: number;
}

/** A run without models does not pay for the part of the statement that stores their usage. */
const statementOf = ({ outcome: { records } }: Finish): Statement<Finish> => {
  if (records === undefined) return FINISH;
  return records.usage.length === 0 ? FINISH_TRACED : FINISH_RECORDED;
};

export interface Finished {
  /** Pending runs of the thread. */
  waiting: number;
  /** Push notifications of the thread may be due. */
  pushes?: true;
}

/** Undefined if the attempt no longer holds the run, or if the database lost `lastCheckpoint` in a crash. */
type FinishRun<On> = (on: On, finish: Finish) => Promise<Finished | undefined>;

export const finishing = (
  record: RecordEnds | undefined,
  recordPushes: RecordPushes | undefined,
): { finish: FinishRun<Database>; finishInTransaction: FinishRun<Queryable> } => {
  const finishWithValues =
    record &&
    statement(VALUES_PARAMETERS, (sql) => finishText(sql, `${recorded(record, sql)}${storing(sql)}`));
  const finishWithPushes = statement(RECORDS_PARAMETERS, (sql) =>
    finishText(sql, `${withPushes(recordPushes)}${storing(sql)}`),
  );

  const withoutPushes = async (queryable: Queryable, finish: Finish): Promise<FinishedRow | undefined> =>
    (await statementOf(finish).query<FinishedRow>(queryable, finish))[0];
  /** Of a thread with push notifications. The caller holds its lock, so this sees all that were set before the end. */
  const withPushesOf = async (transaction: Queryable, finish: Finish): Promise<Finished | undefined> => {
    const [row] = await finishWithPushes.query<FinishedRow>(transaction, finish);
    return row && { waiting: row.unfinished_runs, pushes: true };
  };
  const withValues = async (queryable: Queryable, finish: Finish): Promise<Finished | undefined> => {
    const [row] = await (finishWithValues ?? finishWithPushes).query<FinishedRow>(queryable, finish);
    return row && { waiting: row.unfinished_runs };
  };

  return {
    finishInTransaction: async (transaction, finish) => {
      if (finish.outcome.final !== undefined) return await withValues(transaction, finish);
      const row = await withoutPushes(transaction, finish);
      return row ? { waiting: row.unfinished_runs } : await withPushesOf(transaction, finish);
    },

    finish: async (database, finish) => {
      if (finish.outcome.final !== undefined) return await withValues(database, finish);
      const row = await withoutPushes(database, finish);
      if (row !== undefined) return { waiting: row.unfinished_runs };
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, finish.attempt.threadId);
        return await withPushesOf(transaction, finish);
      });
    },
  };
};
