import type { Database, Encryption, Queryable } from "../../../platform/database/database.ts";
import {
  isRunningRun,
  LARGE_CHARACTERS,
  type GroupedStatement,
} from "../../../platform/database/grouping.ts";
import {
  encryptedParameter,
  listStatement,
  type List,
  type ListStatement,
} from "../../../platform/database/statement.ts";
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
  checkpointId: ["uuid", ({ lastCheckpoint }: Finish) => lastCheckpoint?.checkpointId ?? null],
  checkpointNs: ["text", ({ lastCheckpoint }: Finish) => lastCheckpoint?.checkpointNs ?? null],
} as const;

const recordsOf = ({ outcome }: Finish) => outcome.records;
const attemptOf = ({ attempt }: Finish) => attempt;

/** For runs without models. */
const SPANS_PARAMETERS = { ...FINISH_PARAMETERS, ...spansParameters(recordsOf, attemptOf) } as const;
/** For runs that used models. */
const RECORDS_PARAMETERS = { ...FINISH_PARAMETERS, ...recordsParameters(recordsOf, attemptOf) } as const;
/** For runs with a webhook, and of threads with push notifications. */
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

interface FinishedRow {
  thread_id: string;
  unfinished_runs: number;
}

/** Only statements with `withPushes` end runs of threads with push notifications. */
const WITHOUT_PUSHES = "and t.pushes is null";

/**
 * running → success, error, timeout or interrupted; locks the thread first. While other runs wait the thread
 * stays `busy`, and `resting_status` keeps its later status. `storing`: CTEs that store more of the runs in `ended`.
 * Indexes: threads_pkey, runs_pkey, checkpoints_pkey.
 */
const finishText = (
  sql: Sql,
  { rows, isOne }: List,
  storing = "",
  condition = WITHOUT_PUSHES,
): string => `with held as (
  select t.thread_id, place from ${rows} join threadloom.threads t on t.thread_id = ${sql.threadId} ${condition}
  ${isOne ? "for no key update of t" : `join threadloom.runs r on ${isRunningRun(sql)} for no key update of t, r skip locked`}),
ended as (
  update threadloom.runs r set status = ${sql.status}, error = ${sql.error}, lease_until = null, updated_at = now()
  from held where ${isRunningRun(sql, isOne)}
    and (${sql.checkpointId} is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = ${sql.threadId} and c.checkpoint_ns = ${sql.checkpointNs}
        and c.checkpoint_id = ${sql.checkpointId}))
  returning ${ENDED_COLUMNS}, r.status, r.error, held.place)${storing}
update threadloom.threads t set unfinished_runs = t.unfinished_runs - 1,
  status = case when t.unfinished_runs > 1 then 'busy' else coalesce(${sql.threadStatus}, t.resting_status) end,
  resting_status = coalesce(${sql.threadStatus}, t.resting_status),
  interrupts = case when ${sql.threadStatus} is null then t.interrupts else ${sql.interrupts} end,
  error = case when ${sql.threadStatus} is null then t.error else coalesce(${sql.threadError}, ${sql.error}) end, updated_at = now(),
  state_updated_at = case when ${sql.threadStatus} is null then t.state_updated_at else now() end,
  expires_at = now() + t.ttl_minutes * interval '1 minute', version = t.version + 1
from ended where t.thread_id = ${sql.threadId}
returning t.thread_id, t.unfinished_runs`;

interface FinishedRow {
  thread_id: string;
  unfinished_runs: number;
}

const grouped = ({ query }: ListStatement<Finish>): GroupedStatement<Finish, FinishedRow> => ({
  threadOf: ({ attempt }) => attempt.threadId,
  isSeparate: ({ outcome: { error, interrupts, records, final } }) =>
    error !== null ||
    final !== undefined ||
    interrupts.length + (records?.spans?.length ?? 0) > LARGE_CHARACTERS,
  query,
});

const FINISH = grouped(listStatement(FINISH_PARAMETERS, {}, finishText));
const FINISH_TRACED = grouped(
  listStatement(SPANS_PARAMETERS, {}, (sql, list) => finishText(sql, list, `,\n${storeSpans(sql)}`)),
);
const FINISH_RECORDED = grouped(
  listStatement(RECORDS_PARAMETERS, {}, (sql, list) => finishText(sql, list, `,\n${storeRecords(sql)}`)),
);

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
  const storingAll = (storing: string, condition?: string): ListStatement<Finish> =>
    record === undefined
      ? listStatement(RECORDS_PARAMETERS, {}, (sql, list) =>
          finishText(sql, list, `${storing},\n${storeRecords(sql)}`, condition),
        )
      : listStatement(VALUES_PARAMETERS, {}, (sql, list) =>
          finishText(sql, list, `${recorded(record, sql)}${storing},\n${storeRecords(sql)}`, condition),
        );
  const finishWithValues = grouped(storingAll(""));
  const finishWithPushes = storingAll(withPushes(recordPushes), "");
  /** A run without models does not pay for the part of the statement that stores their usage. */
  const statementOf = ({ outcome: { records, final } }: Finish): GroupedStatement<Finish, FinishedRow> => {
    if (final !== undefined) return finishWithValues;
    if (records === undefined) return FINISH;
    return records.usage.length === 0 ? FINISH_TRACED : FINISH_RECORDED;
  };

  /** Of a thread with push notifications. The caller holds its lock, so this sees all that were set before the end. */
  const withPushesOf = async (transaction: Queryable, finish: Finish): Promise<Finished | undefined> => {
    const [row] = await finishWithPushes.query<FinishedRow>(transaction, [finish]);
    return row && { waiting: row.unfinished_runs, pushes: true };
  };

  return {
    finishInTransaction: async (transaction, finish) => {
      const [row] = await statementOf(finish).query(transaction, [finish]);
      return row ? { waiting: row.unfinished_runs } : await withPushesOf(transaction, finish);
    },

    finish: async (database, finish) => {
      const row = await database.grouped(statementOf(finish), finish);
      if (row !== undefined) return { waiting: row.unfinished_runs };
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, finish.attempt.threadId);
        return await withPushesOf(transaction, finish);
      });
    },
  };
};
