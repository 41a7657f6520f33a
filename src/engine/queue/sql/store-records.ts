import type { Encryption, Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { AttemptRecords, AttemptSelector } from "../attempts.ts";

type Records<Source> = (source: Source) => AttemptRecords | undefined;

/** Parameters of `storeSpans`. */
export const spansParameters = <Source>(
  recordsOf: Records<Source>,
  attemptOf: (source: Source) => AttemptSelector,
) =>
  ({
    recordsPart: ["integer", (source: Source) => recordsOf(source)?.part ?? null],
    attemptStartedAt: ["timestamptz", (source: Source) => recordsOf(source)?.startedAt ?? null],
    spans: [
      "text",
      (source: Source) => recordsOf(source)?.spans ?? null,
      (source: Source, encryption: Encryption) => {
        const { runId, attempt } = attemptOf(source);
        const { spans = null, part = 0 } = recordsOf(source) ?? {};
        return encryption.stored("run_traces", "spans", spans, { run_id: runId, attempt, part });
      },
    ],
  }) as const;

/** Parameters of `storeRecords`. */
export const recordsParameters = <Source>(
  recordsOf: Records<Source>,
  attemptOf: (source: Source) => AttemptSelector,
) =>
  ({
    ...spansParameters(recordsOf, attemptOf),
    usage: [
      "jsonb",
      (source: Source) => {
        const { usage = [] } = recordsOf(source) ?? {};
        return usage.length === 0 ? null : JSON.stringify(usage);
      },
    ],
  }) as const;

type SpansSql = Readonly<Record<keyof ReturnType<typeof spansParameters>, string>>;
type RecordsSql = Readonly<Record<keyof ReturnType<typeof recordsParameters>, string>>;

const USAGE_COLUMNS =
  "model, calls, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens, cost";

/**
 * A CTE that stores the spans of attempts beside the statement that ends them. Reads the CTE `ended`
 * (`ENDED_COLUMNS`). Index: run_traces_pkey.
 */
export const storeSpans = (sql: SpansSql, conflicts = ""): string => `stored_spans as (
  insert into threadloom.run_traces (thread_id, run_id, attempt, part, started_at, spans)
  select ended.thread_id, ended.run_id, ended.attempt, ${sql.recordsPart}, ${sql.attemptStartedAt}, ${sql.spans}
  from ended where ${sql.spans} is not null${conflicts})`;

/** The same with the usage of models. Indexes: run_traces_pkey, model_usage_pkey, runs_pkey. */
export const storeRecords = (sql: RecordsSql, conflicts = ""): string => `${storeSpans(sql, conflicts)},
stored_usage as (
  insert into threadloom.model_usage (run_id, attempt, part, thread_id, assistant_id, graph_id, caller, ${USAGE_COLUMNS})
  select ended.run_id, ended.attempt, ${sql.recordsPart}, ended.thread_id, ended.assistant_id, ended.graph_id, r.caller, ${USAGE_COLUMNS}
  from ended join threadloom.runs r on r.thread_id = ended.thread_id and r.run_id = ended.run_id
    cross join lateral jsonb_to_recordset(${sql.usage}) as used(model text, calls integer, input_tokens bigint,
      output_tokens bigint, cache_read_tokens bigint, cache_creation_tokens bigint, reasoning_tokens bigint, cost numeric)
  where ${sql.usage} is not null${conflicts})`;

interface Stored {
  attempt: AttemptSelector;
  records: AttemptRecords;
}

/**
 * Not fenced: the tokens of an attempt that lost the run were spent, too. An earlier try may have been committed. The lock
 * keeps a deletion of the run from missing the new rows. Index: runs_pkey.
 */
const STORE = statement(
  {
    threadId: ["uuid", ({ attempt }: Stored) => attempt.threadId],
    runId: ["uuid", ({ attempt }: Stored) => attempt.runId],
    attempt: ["integer", ({ attempt }: Stored) => attempt.attempt],
    ...recordsParameters(
      ({ records }: Stored) => records,
      ({ attempt }: Stored) => attempt,
    ),
  },
  (sql) => `with ended as (
  select run_id, thread_id, graph_id, assistant_id, ${sql.attempt} as attempt from threadloom.runs
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} for key share),
${storeRecords(sql, " on conflict do nothing")}
select run_id from ended`,
);

/** Does nothing if the run is gone. */
export const storeAttemptRecords = async (
  queryable: Queryable,
  attempt: AttemptSelector,
  records: AttemptRecords,
): Promise<void> => {
  await STORE.query(queryable, { attempt, records });
};
