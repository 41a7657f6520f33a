import {
  againIfFreed,
  withLargeStrings,
  withoutKnownStrings,
  type TextsWithoutStrings,
} from "../../state/checkpoints/texts.ts";
import { containsLargeString } from "../../state/values/large-strings.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { retryPassing, unlessAlwaysCancelled } from "../../platform/database/passing-faults.ts";
import { threadOffset, type Turn } from "./event-ids.ts";
import type { RunSelector } from "../queue/attempts.ts";
import { PROTOCOL_EVENT_PREFIX, type Wire } from "./wires.ts";
import { LeaseLostError, sqlState, UNIQUE_VIOLATION } from "../../platform/domain/errors.ts";
import { setTimeout as delay } from "node:timers/promises";
import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";

export interface RunEvent {
  seq: number;
  /** The id within the thread, see event-ids.ts; undefined for attempts without a turn. */
  threadSeq?: number;
  event: string;
  data: string;
  /** A client that has this checkpoint needs no earlier event. Only stored in the log. */
  checkpoint?: string;
}

/** `pending` includes runs claimed by the reading process; `ended` includes runs that are gone. */
export type RunPhase = "pending" | "running" | "ended";

/** `isWanted`: false once nobody waits for the events any more. */
export type LogEvents = (events: RunEvent[], isWanted: () => boolean) => Promise<void>;

export interface EventSource extends RunSelector, Turn {}

const OF_RUN = { threadId: "uuid", runId: "uuid" } as const;

/**
 * Fenced by a lock on the run's row. Locks the thread first (engine/queue/README.md): the foreign key would
 * lock it after the run, a deadlock with deletions. Data are one text with line breaks, because an array
 * escapes each quotation mark. 90,340 events/s at 50 per insert, 3,711 with one each.
 */
const APPEND = statement(
  {
    ...OF_RUN,
    attempt: "integer",
    seqs: "bigint[]",
    events: "text[]",
    data: "text",
    threadOffset: "bigint",
    checkpointIds: "uuid[]",
    strings: "text",
    stringBytes: "integer[]",
  },
  (sql) => `with thread as (
  select thread_id from threadloom.threads where thread_id = ${sql.threadId} for key share),
held as (
  select r.thread_id, r.run_id from thread join threadloom.runs r on r.thread_id = thread.thread_id
  where r.thread_id = ${sql.threadId} and r.run_id = ${sql.runId} and r.attempt = ${sql.attempt} and r.status = 'running' for share of r)
insert into threadloom.run_events (thread_id, run_id, seq, thread_seq, event, data, checkpoint_id, strings, string_bytes)
select held.thread_id, held.run_id, e.seq, e.seq + ${sql.threadOffset}, e.event, e.data, e.checkpoint_id,
  string_to_array(nullif(e.strings, ''), ',')::uuid[], e.string_bytes
from held, unnest(${sql.seqs}, ${sql.events}, string_to_array(${sql.data}, E'\\n'), ${sql.checkpointIds},
  string_to_array(${sql.strings}, E'\\n'), ${sql.stringBytes})
  as e(seq, event, data, checkpoint_id, strings, string_bytes)
returning seq`,
);

const COLUMNS = `seq::float8 as seq, thread_seq::float8 as "threadSeq", event`;

/**
 * PostgreSQL knows a value's length without reading the value, so omitted data cost nothing. `largeToo`: also
 * return a first event above the limit. `wire`: only its events have data and count bytes.
 */
const READ = statement(
  { ...OF_RUN, after: "bigint", events: "bigint", bytes: "integer", largeToo: "boolean", wire: "text" },
  (sql) => `select ${COLUMNS},
  case when is_other then '' when bytes <= ${sql.bytes} or ${sql.largeToo} then data end as data from (
  select seq, thread_seq, event, data, is_other, bytes, sum(bytes) over (order by seq) - bytes as bytes_before
  from (select *, case when is_other then 0 else octet_length(data) + string_bytes end as bytes
    from (select seq, thread_seq, event, data, coalesce(string_bytes, 0) as string_bytes,
        starts_with(event, '${PROTOCOL_EVENT_PREFIX}') <> (${sql.wire} = 'protocol') and event not in ('metadata', 'error') as is_other
      from threadloom.run_events
      where thread_id = ${sql.threadId} and run_id = ${sql.runId} and seq > ${sql.after} order by seq limit ${sql.events}) as page) as sized
) as measured
where bytes_before + bytes <= ${sql.bytes} or bytes_before = 0 order by seq`,
);

const HAS_ALL_AFTER = statement(
  { ...OF_RUN, seq: "bigint" },
  (sql) => `select exists (
    select from threadloom.run_events where thread_id = ${sql.threadId} and run_id = ${sql.runId} and seq = ${sql.seq})
  or (select max(seq) from threadloom.run_events where thread_id = ${sql.threadId} and run_id = ${sql.runId}) < ${sql.seq} as whole`,
);

const LAST_SEQ = statement(
  OF_RUN,
  (sql) => `select coalesce(max(seq), -1)::float8 as seq from threadloom.run_events
  where thread_id = ${sql.threadId} and run_id = ${sql.runId}`,
);

const SHOWING = statement(
  { ...OF_RUN, checkpointId: "uuid" },
  (sql) => `select seq::float8 as seq from threadloom.run_events
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and checkpoint_id = ${sql.checkpointId} order by seq limit 1`,
);

const OPENING = statement(
  OF_RUN,
  (sql) => `select ${COLUMNS}, data from threadloom.run_events
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and event = 'metadata' order by seq desc limit 1`,
);

const NAMED = statement(
  { ...OF_RUN, event: "text", limit: "bigint" },
  (sql) => `select ${COLUMNS}, data from threadloom.run_events
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} and event = ${sql.event} order by seq limit ${sql.limit}`,
);

/** `data` is null for an event above the limit. */
type EventRow = Omit<RunEvent, "threadSeq" | "data"> & { threadSeq: number | null; data: string | null };

const toEvents = async (
  rows: readonly EventRow[],
  { threadId, runId }: RunSelector,
  database: Database,
): Promise<RunEvent[]> => {
  const { encryption } = database;
  const texts = rows.map(({ seq, data }) =>
    encryption.decryptedValue("run_events", "data", data ?? "", { run_id: runId, seq }),
  );
  const whole = await withLargeStrings(database, threadId, texts);
  return rows.map(({ seq, threadSeq, event }, index) => ({
    seq,
    ...(threadSeq === null ? {} : { threadSeq }),
    event,
    data: whole[index]!,
  }));
};

/** A large string that the thread's state already has is not stored again. */
const appendEvents = async (
  queryable: Queryable,
  source: EventSource,
  events: readonly RunEvent[],
  given?: TextsWithoutStrings,
) => {
  const { encryption } = queryable;
  const texts = given?.texts ?? events.map(({ data }) => data);
  const data = texts.map((text, index) =>
    encryption.stored("run_events", "data", text, { run_id: source.runId, seq: events[index]!.seq }),
  );
  return await APPEND.query(queryable, {
    ...source,
    seqs: events.map(({ seq }) => seq),
    events: events.map(({ event }) => event),
    data: data.join("\n"),
    threadOffset: threadOffset(source),
    checkpointIds: events.some(({ checkpoint }) => checkpoint !== undefined)
      ? events.map(({ checkpoint }) => checkpoint)
      : null,
    strings: given?.hashes?.join("\n") ?? null,
    stringBytes: given?.bytes ?? null,
  });
};

const MS_PER_SECOND = 1_000;

/** Events expire by their run's end. Their own age only limits the search to few rows of an index. */
const DELETE_EXPIRED = statement(
  { retentionSeconds: "float8", limit: "bigint", from: "timestamptz" },
  (sql) => `with expired as (
  select e.ctid, e.created_at from threadloom.run_events e
  where e.created_at < now() - make_interval(secs => ${sql.retentionSeconds}) and e.created_at >= ${sql.from}
    and not exists (select from threadloom.runs r
      where r.thread_id = e.thread_id and r.run_id = e.run_id and (r.status in ('pending', 'running')
        or r.updated_at >= now() - make_interval(secs => ${sql.retentionSeconds})))
  order by e.created_at limit ${sql.limit}
  for update skip locked),
removed as (
  delete from threadloom.run_events where ctid = any (array(select ctid from expired)) returning 1)
select (select count(*)::int from removed) as removed, max(created_at)::text as last from expired`,
);

/** `onAppended`: the events of one statement, and its seconds. */
export const createEventLog = (
  database: Database,
  onAppended?: (events: number, seconds: number) => void,
) => ({
  /**
   * Throws LeaseLostError if the attempt no longer holds the run. Waits for an unreachable database while `isWanted`,
   * because the checkpoint that follows the events waits for them.
   */
  async append(
    source: EventSource,
    events: readonly RunEvent[],
    isWanted: () => boolean = () => true,
  ): Promise<void> {
    const begunAt = performance.now();
    const hasLargeStrings = events.some(({ data }) => containsLargeString(data));
    const write = async (isRetry: boolean): Promise<void> => {
      try {
        const rows = hasLargeStrings
          ? await database.transaction(async (transaction) => {
              const texts = events.map(({ data }) => data);
              const stored = await withoutKnownStrings(transaction, source.threadId, texts);
              return await appendEvents(transaction, source, events, stored);
            })
          : await appendEvents(database, source, events);
        if (rows.length === 0) throw new LeaseLostError(source.runId, source.attempt);
      } catch (error) {
        // The earlier try was committed although its response was lost.
        if (!isRetry || sqlState(error) !== UNIQUE_VIOLATION) throw error;
      }
    };
    await retryPassing(write, { isWanted, after: unlessAlwaysCancelled() });
    onAppended?.(events.length, (performance.now() - begunAt) / MS_PER_SECOND);
  },

  /**
   * `"large"` if the first event alone exceeds `bytes` and `largeToo` is false. Events of the other wire have
   * no data. Index: run_events_pkey, also for the next methods.
   */
  async read(
    address: RunSelector,
    after: number,
    options: { events: number; bytes: number; largeToo: boolean; wire: Wire },
  ): Promise<RunEvent[] | "large"> {
    return await againIfFreed(async () => {
      const rows = await READ.query<EventRow>(database, { ...address, after, ...options });
      return rows.some(({ data }) => data === null) ? "large" : await toEvents(rows, address, database);
    });
  },

  async named(address: RunSelector, event: string, limit: number): Promise<RunEvent[]> {
    return await againIfFreed(async () => {
      const rows = await NAMED.query<EventRow>(database, { ...address, event, limit });
      return await toEvents(rows, address, database);
    });
  },

  /** Whether all events after this id are kept; true beyond the last id. */
  async hasAllAfter(address: RunSelector, seq: number): Promise<boolean> {
    const rows = await HAS_ALL_AFTER.query<{ whole: boolean | null }>(database, { ...address, seq });
    return rows[0]?.whole ?? false;
  },

  async lastSeq(address: RunSelector): Promise<number> {
    const rows = await LAST_SEQ.query<{ seq: number }>(database, address);
    return rows[0]?.seq ?? -1;
  },

  async showing(address: RunSelector, checkpointId: string): Promise<number | undefined> {
    const rows = await SHOWING.query<{ seq: number }>(database, { ...address, checkpointId });
    return rows[0]?.seq;
  },

  /** The first event of the newest attempt with events. */
  async opening(address: RunSelector): Promise<RunEvent | undefined> {
    const rows = await OPENING.query<EventRow>(database, address);
    return (await toEvents(rows, address, database))[0];
  },

  /**
   * Skips locked rows. `from`: `last` of the previous batch, to skip old events that their runs still need.
   * Index: run_events_by_age.
   */
  async deleteExpired(
    retentionSeconds: number,
    limit: number,
    from = "-infinity",
  ): Promise<{ removed: number; last: string | undefined }> {
    const [row] = await DELETE_EXPIRED.query<{ removed: number; last: string | null }>(database, {
      retentionSeconds,
      limit,
      from,
    });
    return { removed: row!.removed, last: row!.last ?? undefined };
  },
});

export type EventLog = ReturnType<typeof createEventLog>;

const SWEEP_MS = 10_000;
/** Costs 50 ms of the database. */
const EVENTS_PER_BATCH = 5_000;

/**
 * One batch per sweep removed only 500 events/s, while 90,000/s can be written. Processes share the work: the
 * statement skips locked rows.
 */
export const sweepEvents = async (
  eventLog: Pick<EventLog, "deleteExpired">,
  retentionSeconds: number,
  signal?: AbortSignal,
): Promise<number> => {
  let removed = 0;
  let from: string | undefined;
  while (!signal?.aborted) {
    const startedAt = performance.now();
    const batch = await eventLog.deleteExpired(retentionSeconds, EVENTS_PER_BATCH, from);
    removed += batch.removed;
    from = batch.last;
    if (batch.removed < EVENTS_PER_BATCH) break;
    // Leaves the database to requests half of the time.
    await delay(performance.now() - startedAt, undefined, { signal }).catch(() => undefined);
  }
  return removed;
};

export const startEventRetention = (
  eventLog: EventLog,
  retentionSeconds: number,
  logger: Logger,
): { close(): Promise<void> } => {
  const closing = new AbortController();
  const periodic = startPeriodic({
    everyMs: SWEEP_MS,
    work: () => sweepEvents(eventLog, retentionSeconds, closing.signal),
    onError: logFailure(logger, "expired events could not be removed"),
  });
  return {
    async close() {
      closing.abort();
      await periodic.close();
    },
  };
};
