import type { Queryable } from "../../platform/database/database.ts";
import type { ThreadField } from "./schemas.ts";

/** PostgreSQL writes the record's JSON: a page of ten is ten texts instead of 120 columns. */
export interface ThreadRecordRow {
  thread_id: string;
  /** From `metadata.graph_id`; null if it is missing. */
  graph_id: string | null;
  /** Nothing has touched the thread since its creation, so it has no values. */
  untouched: boolean;
  /** JSON text without `values` and `ttl`; has `error` only if there is one. */
  record: string;
  ttl: string | null;
}

/** The format of `timestamp` in platform/lib/timestamps.ts. */
const wireTime = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')`;

export const CANDIDATE_COLUMNS = `thread_id, metadata ->> 'graph_id' as graph_id,
  status = 'idle' and updated_at = created_at and state_updated_at = created_at as untouched`;

/** Columns of any length. */
export const LONG_COLUMNS = ["metadata", "config", "interrupts", "error"] as const;
export type LongColumn = (typeof LONG_COLUMNS)[number];

export const STORED_COLUMNS = `thread_id, status, ${LONG_COLUMNS.join(", ")}, ttl_strategy, ttl_minutes, expires_at,
  created_at, updated_at, state_updated_at`;

const RECORD = `concat('{"thread_id":"', thread_id, '","created_at":"', ${wireTime("created_at")},
    '","updated_at":"', ${wireTime("updated_at")}, '","state_updated_at":"', ${wireTime("state_updated_at")}, '"',
    ' ,"metadata":', metadata, ' ,"config":', config, ',"status":"', status, '"', ' ,"interrupts":', interrupts,
    case when error is not null then ' ,"error":' end, error, '}')`;

const TTL = `case when ttl_minutes is not null then
    concat('{"strategy":"', ttl_strategy, '","ttl_minutes":', ttl_minutes,
      case when expires_at is not null then concat(',"expires_at":"', ${wireTime("expires_at")}, '"') end, '}')
  end`;

/** For a select from `threads` or of `STORED_COLUMNS`. */
export const RECORD_COLUMNS = `${CANDIDATE_COLUMNS}, ${RECORD} as record, ${TTL} as ttl`;

/** Content never matches: no stored JSON has a space before a comma, and texts escape their quotes. */
const LONG_PART = /(?= ,"(?:metadata|config|interrupts|error)":)/;
const NAME_OF_PART = /^ ,"(metadata|config|interrupts|error)":/;

const openRecord = ({ encryption }: Queryable, { thread_id, record }: ThreadRecordRow): string =>
  record
    .split(LONG_PART)
    .map((part) => {
      const column = NAME_OF_PART.exec(part)?.[1] as LongColumn | undefined;
      return column === undefined ? part : encryption.decryptedJson("threads", column, part, { thread_id });
    })
    .join("");

export const openRecords = <Row extends ThreadRecordRow>(queryable: Queryable, rows: Row[]): Row[] =>
  queryable.encryption.isOn
    ? rows.map((row) => (row.record.includes("enc1:") ? { ...row, record: openRecord(queryable, row) } : row))
    : rows;

export interface RecordOptions {
  /** JSON text; null for a thread that never ran. */
  values: string | null;
  includeTtl?: boolean;
  select?: ReadonlySet<ThreadField> | undefined;
  extracted?: string | undefined;
}

export const writeRecord = (row: ThreadRecordRow, options: RecordOptions): string => {
  const { values, includeTtl = false, select, extracted } = options;
  const more: string[] = [];
  if (select === undefined || select.has("values")) more.push(`"values":${values ?? "null"}`);
  if (includeTtl && row.ttl !== null) more.push(`"ttl":${row.ttl}`);
  if (extracted !== undefined) more.push(`"extracted":${extracted}`);
  const record = select === undefined ? row.record : pick(row.record, select);
  if (more.length === 0) return record;
  return `${record.slice(0, -1)}${record === "{}" ? "" : ","}${more.join(",")}}`;
};

const pick = (record: string, select: ReadonlySet<ThreadField>): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(JSON.parse(record) as Record<string, unknown>).filter(([name]) =>
        select.has(name as ThreadField),
      ),
    ),
  );
