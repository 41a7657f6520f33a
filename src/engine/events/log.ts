import type { Database } from "../../platform/database/database.ts";
import { retryPassing } from "../../platform/database/passing-faults.ts";
import { threadOffset, type Turn } from "./event-ids.ts";
import { PROTOCOL_EVENT_PREFIX, type Wire } from "./wires.ts";
import { LeaseLostError, sqlState, UNIQUE_VIOLATION } from "../../platform/domain/errors.ts";

export interface RunEvent {
  seq: number;
  /** The id within the thread, see event-ids.ts; undefined for attempts without a turn. */
  threadSeq?: number;
  event: string;
  data: string;
  /** A client that has this checkpoint needs no earlier event. Only stored in the log. */
  checkpoint?: string;
}

export interface RunAddress {
  threadId: string;
  runId: string;
}

/**
 * A run's phase for a reader of the log. `pending`: also claimed by the reading process. `ended`: also gone.
 * `-unlogged`: the log will never have all events of the newest attempt.
 */
export type RunPhase = "pending" | "running" | "running-unlogged" | "ended" | "ended-unlogged";

export interface EventSource extends RunAddress, Turn {}

/**
 * Batches: 90,340 events/s at 50 per insert, 3,711 with one each. Fenced by a lock on the run's row. Data are
 * one text joined by line breaks, because an array escapes each quotation mark of the JSON. Locks the thread
 * before the run, as everywhere (src/engine/queue/README.md): the foreign key would lock it after the run, a
 * deadlock with deletions of the thread.
 */
const APPEND = `with thread as (
  select thread_id from threadloom.threads where thread_id = $1 for key share),
held as (
  select r.thread_id, r.run_id from thread join threadloom.runs r on r.thread_id = thread.thread_id
  where r.thread_id = $1 and r.run_id = $2 and r.attempt = $3 and r.status = 'running' for share of r)
insert into threadloom.run_events (thread_id, run_id, seq, thread_seq, event, data, checkpoint_id)
select held.thread_id, held.run_id, e.seq, e.seq + $7::bigint, e.event, e.data, e.checkpoint_id
from held, unnest($4::bigint[], $5::text[], string_to_array($6::text, E'\\n'), $8::uuid[])
  as e(seq, event, data, checkpoint_id)
returning seq`;

const COLUMNS = `seq::float8 as seq, thread_seq::float8 as "threadSeq", event`;

/**
 * PostgreSQL knows a value's length without reading it, so omitted data cost nothing. $6: send a first event
 * above the limit, too. $7: the wire whose events come with data; others count no bytes.
 */
const READ = `select ${COLUMNS},
  case when is_other then '' when bytes <= $5 or $6 then data end as data from (
  select seq, thread_seq, event, data, is_other, bytes, sum(bytes) over (order by seq) - bytes as bytes_before
  from (select *, case when is_other then 0 else octet_length(data) end as bytes
    from (select seq, thread_seq, event, data,
        starts_with(event, '${PROTOCOL_EVENT_PREFIX}') <> ($7 = 'protocol') and event not in ('metadata', 'error') as is_other
      from threadloom.run_events
      where thread_id = $1 and run_id = $2 and seq > $3 order by seq limit $4) as page) as sized
) as measured
where bytes_before + bytes <= $5 or bytes_before = 0 order by seq`;

const HAS_ALL_AFTER = `select exists (
    select from threadloom.run_events where thread_id = $1 and run_id = $2 and seq = $3)
  or (select max(seq) from threadloom.run_events where thread_id = $1 and run_id = $2) < $3 as whole`;

const LAST_SEQ = `select coalesce(max(seq), -1)::float8 as seq from threadloom.run_events
  where thread_id = $1 and run_id = $2`;

const SHOWING = `select seq::float8 as seq from threadloom.run_events
  where thread_id = $1 and run_id = $2 and checkpoint_id = $3 order by seq limit 1`;

const OPENING = `select ${COLUMNS}, data from threadloom.run_events
  where thread_id = $1 and run_id = $2 and event = 'metadata' order by seq desc limit 1`;

const NAMED = `select ${COLUMNS}, data from threadloom.run_events
  where thread_id = $1 and run_id = $2 and event = $3 order by seq limit $4`;

/** `data` is null for an event above the limit. */
type EventRow = Omit<RunEvent, "threadSeq" | "data"> & { threadSeq: number | null; data: string | null };

const toEvent = (
  { seq, threadSeq, event, data }: EventRow,
  address: RunAddress,
  { encryption }: Database,
): RunEvent => ({
  seq,
  ...(threadSeq === null ? {} : { threadSeq }),
  event,
  data: encryption.decryptedValue("run_events", "data", data ?? "", { run_id: address.runId, seq }),
});

/** Longer than a failover; then the run is left to recovery. */
const RETRY_SECONDS = 30;

const DELETE_EXPIRED = `with expired as (
  select e.ctid, e.created_at from threadloom.run_events e
  where e.created_at < now() - make_interval(secs => $1::float8) and e.created_at >= $3::timestamptz
    and not exists (select from threadloom.runs r
      where r.thread_id = e.thread_id and r.run_id = e.run_id and r.status in ('pending', 'running'))
  order by e.created_at limit $2
  for update skip locked),
removed as (
  delete from threadloom.run_events where ctid = any (array(select ctid from expired)) returning 1)
select (select count(*)::int from removed) as removed, max(created_at)::text as last from expired`;

export const createEventLog = (database: Database) => ({
  /** Throws LeaseLostError if the attempt no longer holds the run. Waits for an unreachable database. */
  async append(source: EventSource, events: readonly RunEvent[]): Promise<void> {
    const { encryption } = database;
    const write = async (isRetry: boolean): Promise<void> => {
      try {
        const rows = await database.query(APPEND, [
          source.threadId,
          source.runId,
          source.attempt,
          events.map((event) => event.seq),
          events.map((event) => event.event),
          events
            .map(({ seq, data }) =>
              encryption.stored("run_events", "data", data, { run_id: source.runId, seq }),
            )
            .join("\n"),
          threadOffset(source) ?? null,
          events.some(({ checkpoint }) => checkpoint !== undefined)
            ? events.map(({ checkpoint }) => checkpoint ?? null)
            : null,
        ]);
        if (rows.length === 0) throw new LeaseLostError(source.runId, source.attempt);
      } catch (error) {
        // The earlier try was committed although its response was lost.
        if (!isRetry || sqlState(error) !== UNIQUE_VIOLATION) throw error;
      }
    };
    await retryPassing(write, { forMs: RETRY_SECONDS * 1_000 });
  },

  /**
   * `"large"` if the first event alone exceeds `bytes` and `largeToo` is false. Events of the other wire have
   * no data. Index: run_events_pkey, as for all that follow.
   */
  async read(
    address: RunAddress,
    after: number,
    { events, bytes, largeToo, wire }: { events: number; bytes: number; largeToo: boolean; wire: Wire },
  ): Promise<RunEvent[] | "large"> {
    const rows = await database.query<EventRow>(READ, [
      address.threadId,
      address.runId,
      after,
      events,
      bytes,
      largeToo,
      wire,
    ]);
    return rows.some(({ data }) => data === null)
      ? "large"
      : rows.map((row) => toEvent(row, address, database));
  },

  async named(address: RunAddress, event: string, limit: number): Promise<RunEvent[]> {
    const values = [address.threadId, address.runId, event, limit];
    const rows = await database.query<EventRow>(NAMED, values);
    return rows.map((row) => toEvent(row, address, database));
  },

  /** Whether all events after this id are kept; true beyond the last id. */
  async hasAllAfter({ threadId, runId }: RunAddress, seq: number): Promise<boolean> {
    const rows = await database.query<{ whole: boolean | null }>(HAS_ALL_AFTER, [threadId, runId, seq]);
    return rows[0]?.whole ?? false;
  },

  async lastSeq({ threadId, runId }: RunAddress): Promise<number> {
    const rows = await database.query<{ seq: number }>(LAST_SEQ, [threadId, runId]);
    return rows[0]?.seq ?? -1;
  },

  async showing({ threadId, runId }: RunAddress, checkpointId: string): Promise<number | undefined> {
    const rows = await database.query<{ seq: number }>(SHOWING, [threadId, runId, checkpointId]);
    return rows[0]?.seq;
  },

  /** The first event of the newest attempt with events; every stream begins with it. */
  async opening(address: RunAddress): Promise<RunEvent | undefined> {
    const [row] = await database.query<EventRow>(OPENING, [address.threadId, address.runId]);
    return row && toEvent(row, address, database);
  },

  /**
   * Skips locked rows. `from`: `last` of the previous batch, to skip old events of unfinished runs. Index:
   * run_events_by_age.
   */
  async deleteExpired(
    retentionSeconds: number,
    limit: number,
    from = "-infinity",
  ): Promise<{ removed: number; last: string | undefined }> {
    const [row] = await database.query<{ removed: number; last: string | null }>(DELETE_EXPIRED, [
      retentionSeconds,
      limit,
      from,
    ]);
    return { removed: row?.removed ?? 0, last: row?.last ?? undefined };
  },
});

export type EventLog = ReturnType<typeof createEventLog>;
