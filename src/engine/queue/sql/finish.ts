import type { Database, Encryption, Queryable } from "../../../platform/database/database.ts";
import { LARGE_CHARACTERS, type GroupedStatement } from "../../../platform/database/grouping.ts";
import { isRunningRun } from "../../../platform/database/running-run.ts";
import {
  arraysOf,
  columnsOf,
  encryptedParameter,
  rowsOf,
  statement,
  type Statement,
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
type SpansSql = Readonly<Record<keyof typeof SPANS_PARAMETERS, string>>;
type RecordsSql = Readonly<Record<keyof typeof RECORDS_PARAMETERS, string>>;

/** SQL of the parts that differ between one thread and several. */
interface Selection {
  /** The CTE `thread`, which locks the threads, and CTEs beside it. */
  locking: string;
  /** A row per run to end, and its condition. */
  runs: string;
  isRun: string;
  /** Relates a row of `ended` to the values. */
  ended: string;
}

/**
 * running → success, error, timeout or interrupted; locks the thread first. While other runs wait the thread
 * stays `busy`, and `resting_status` keeps its later status. Indexes: threads_pkey, runs_pkey,
 * checkpoints_pkey.
 */
const finishText = (
  sql: Sql,
  { locking, runs, isRun, ended }: Selection,
  recording = "",
): string => `with ${locking},
ended as (
  update threadloom.runs r set status = ${sql.status}, error = ${sql.error}, lease_until = null, updated_at = now(),
    unlogged_attempt = case when ${sql.unlogged} and r.reader_id <> r.worker_id then r.attempt else r.unlogged_attempt end
  from ${runs} where ${isRun}
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
from ${ended} where t.thread_id = ${sql.threadId}
returning t.thread_id, t.unfinished_runs`;

/** Only statements with `withPushes` end runs of threads with push notifications. */
const WITHOUT_PUSHES = "pushes is null";

const finishOne = (sql: Sql, recording = "", condition = ""): string =>
  finishText(
    sql,
    {
      locking: `thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId}
    ${condition}for no key update)`,
      runs: "thread",
      isRun: `r.thread_id = ${sql.threadId} and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt} and r.status = 'running'`,
      ended: "ended",
    },
    recording,
  );

const storing = (sql: RecordsSql, ended = "ended"): string => `,\n${storeRecords(sql, ended)}`;

const AND_WITHOUT_PUSHES = `and ${WITHOUT_PUSHES} `;
const FINISH = statement(FINISH_PARAMETERS, (sql) => finishOne(sql, "", AND_WITHOUT_PUSHES));
const FINISH_TRACED = statement(SPANS_PARAMETERS, (sql) =>
  finishOne(sql, `,\n${storeSpans(sql, "ended")}`, AND_WITHOUT_PUSHES),
);
const FINISH_RECORDED = statement(RECORDS_PARAMETERS, (sql) =>
  finishOne(sql, storing(sql), AND_WITHOUT_PUSHES),
);

/** Leaves out runs that are locked, or whose thread is. */
const togetherText = <Name extends keyof RecordsSql>(
  names: readonly Name[],
  sql: Readonly<Record<Name, string>>,
  held: Sql,
  recording?: (ended: string) => string,
): string => {
  const asked = columnsOf("asked", names) as Sql;
  const ended = `ended join held on ended.run_id = ${held.runId}`;
  return finishText(
    held,
    {
      locking: `asked as (select * from ${rowsOf("asked", names, sql)}),
thread as (
  select thread_id from threadloom.threads where thread_id = any(${(sql as Sql).threadId}) and ${WITHOUT_PUSHES}
  for no key update skip locked),
held as (
  select asked.* from thread join asked on ${asked.threadId} = thread.thread_id
    join threadloom.runs r on ${isRunningRun(asked)}
  for no key update of r skip locked)`,
      runs: "held",
      isRun: isRunningRun(held),
      ended,
    },
    recording?.(ended),
  );
};

const NAMES = Object.keys(FINISH_PARAMETERS) as (keyof Sql)[];
const FINISH_TOGETHER = statement(
  arraysOf<keyof Sql, Finish, readonly Finish[]>(FINISH_PARAMETERS, (all) => all),
  (sql) => togetherText(NAMES, sql, columnsOf("held", NAMES)),
);

const TRACED_NAMES = Object.keys(SPANS_PARAMETERS) as (keyof SpansSql)[];
const TRACED_TOGETHER = statement(
  arraysOf<keyof SpansSql, Finish, readonly Finish[]>(SPANS_PARAMETERS, (all) => all),
  (sql) => {
    const held = columnsOf("held", TRACED_NAMES);
    return togetherText(TRACED_NAMES, sql, held, (ended) => `,\n${storeSpans(held, ended)}`);
  },
);

const RECORDED_NAMES = Object.keys(RECORDS_PARAMETERS) as (keyof RecordsSql)[];
const RECORDED_TOGETHER = statement(
  arraysOf<keyof RecordsSql, Finish, readonly Finish[]>(RECORDS_PARAMETERS, (all) => all),
  (sql) => {
    const held = columnsOf("held", RECORDED_NAMES);
    return togetherText(RECORDED_NAMES, sql, held, (ended) => storing(held, ended));
  },
);

interface FinishedRow {
  thread_id: string;
  unfinished_runs: number;
}

const groupedBy = (
  alone: Statement<Finish>,
  together: Statement<readonly Finish[]>,
): GroupedStatement<Finish, FinishedRow> => ({
  threadOf: ({ attempt }) => attempt.threadId,
  isSeparate: ({ outcome: { error, interrupts, records } }) =>
    error !== null || interrupts.length + (records?.spans?.length ?? 0) > LARGE_CHARACTERS,
  alone: async (queryable, finish) => (await alone.query<FinishedRow>(queryable, finish))[0],
  async together(queryable, all) {
    const rows = await together.query<FinishedRow>(queryable, all);
    return new Map(rows.map((row) => [row.thread_id, row]));
  },
});

const FINISHING = groupedBy(FINISH, FINISH_TOGETHER);
const FINISHING_TRACED = groupedBy(FINISH_TRACED, TRACED_TOGETHER);
const FINISHING_RECORDED = groupedBy(FINISH_RECORDED, RECORDED_TOGETHER);
/** A run without models does not pay for the part of the statement that stores their usage. */
const finishingOf = ({ outcome: { records } }: Finish): GroupedStatement<Finish, FinishedRow> => {
  if (records === undefined) return FINISHING;
  return records.usage.length === 0 ? FINISHING_TRACED : FINISHING_RECORDED;
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
    statement(VALUES_PARAMETERS, (sql) => finishOne(sql, `${recorded(record, sql)}${storing(sql)}`));
  const finishWithPushes = statement(RECORDS_PARAMETERS, (sql) =>
    finishOne(sql, `${withPushes(recordPushes)}${storing(sql)}`),
  );

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
      const row = await finishingOf(finish).alone(transaction, finish);
      return row ? { waiting: row.unfinished_runs } : await withPushesOf(transaction, finish);
    },

    finish: async (database, finish) => {
      if (finish.outcome.final !== undefined) return await withValues(database, finish);
      const row = await database.grouped(finishingOf(finish), finish);
      if (row !== undefined) return { waiting: row.unfinished_runs };
      return await database.transaction(async (transaction) => {
        await lockThread(transaction, finish.attempt.threadId);
        return await withPushesOf(transaction, finish);
      });
    },
  };
};
