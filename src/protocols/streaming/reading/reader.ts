import { setTimeout as delay } from "node:timers/promises";
import type { EndedRow, StreamingRepository } from "../repository.ts";
import { NOTHING_YET, type Attendance, type Connections, type Opening, type Place } from "./connections.ts";
import { endedRun, endEventsOf, lastSeqOf, runningId, type EndedRun } from "./ends.ts";
import { namespaceOf, type EventFilter, type ThreadEvent } from "./frames.ts";
import type { Caller } from "../../../access/caller.ts";
import { retryPassing } from "../../../platform/database/passing-faults.ts";
import { attemptOf, turnOf } from "../../../engine/events/event-ids.ts";
import type { Hub } from "../../../engine/events/hub.ts";
import type { RunEvent } from "../../../engine/events/log.ts";
import type { ThreadEvents, ThreadReader, BegunRun } from "../../../engine/events/readers/thread-reader.ts";
import { INTERRUPTED_EVENT, PROTOCOL_EVENT_PREFIX } from "../../../engine/events/wires.ts";
import type { Sent, SubscriptionReader } from "./merged-reader.ts";

/** A replayed end waits this long for the client to start a run. */
const RUN_STARTED_WITHIN_MS = 1_000;

/** Whether the run's end is replayed to readers of data. */
const isSentAgain = (turn: number, { endedTurn, newestTurn }: Opening): boolean =>
  newestTurn !== undefined && turn >= newestTurn && turn <= endedTurn;

/** Whether the run's beginning and end are sent; its data are always sent. */
const isSent = (turn: number, opening: Opening, { isWatcher }: Pick<EventFilter, "isWatcher">): boolean =>
  turn > opening.endedTurn || (!isWatcher && isSentAgain(turn, opening));

/** The same as for readers of runs. */
const PATIENCE_MS = 60_000;

export interface SubscriptionReaderOptions {
  threadId: string;
  caller?: Caller | undefined;
  filter: EventFilter;
  hub: Pick<Hub, "readThread">;
  repository: Pick<StreamingRepository, "ended" | "newestRun">;
  audiences: Connections;
  hasFlushed: Attendance["hasFlushed"];
  untilSeen(signal: AbortSignal): Promise<void>;
  open(): Promise<Opening>;
  /** Called for each run that begins. */
  isStillSeen(): Promise<boolean>;
  onClose(): void;
}

const running = ({ runId, graphId }: BegunRun, attempt: number, seq: number): ThreadEvent => ({
  seq,
  eventId: runningId(runId, attempt),
  method: "lifecycle",
  namespace: [],
  params: JSON.stringify({
    namespace: [],
    timestamp: Date.now(),
    data: { event: "running", graph_name: graphId },
  }),
});

const toThreadEvent = (
  run: BegunRun,
  { event, data, seq, threadSeq = 0 }: RunEvent,
): ThreadEvent | undefined => {
  if (event === "metadata") return running(run, attemptOf(seq), threadSeq);
  if (!event.startsWith(PROTOCOL_EVENT_PREFIX) || event === INTERRUPTED_EVENT) return undefined;
  return {
    seq: threadSeq,
    eventId: String(threadSeq),
    method: event.slice(PROTOCOL_EVENT_PREFIX.length),
    namespace: namespaceOf(data),
    params: data,
  };
};

/** Reads all present and later runs of a thread, without an end. */
export const readSubscription = (options: SubscriptionReaderOptions): SubscriptionReader => {
  const { threadId, filter, hub, repository, audiences, open, untilSeen, hasFlushed } = options;
  const closing = new AbortController();
  const openedAt = performance.now();
  const { signal } = closing;
  let place: Place | undefined;
  let thread: ThreadReader | undefined;
  /** The current run's interrupts. */
  let interrupted: { runId: string; sent: string } | undefined;
  /** The next events, while they are awaited. */
  let upcoming: ReturnType<ThreadReader["next"]> | undefined;

  /** Retries while the database is away. */
  const patiently = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> =>
    await retryPassing(ask, { forMs: PATIENCE_MS, isWanted: () => !signal.aborted });
  const rowOf = (runId: string): Promise<EndedRow | undefined> =>
    patiently(() => repository.ended(threadId, runId));

  /** Waits for the next events without consuming them. */
  const ahead = async (): Promise<void> => {
    upcoming = thread?.next();
    // The consumer throws the failure.
    await upcoming?.catch(() => undefined);
  };

  /** See docs/decisions/027 and 040. */
  const endsOf = (run: EndedRun, opening: Opening): ThreadEvent[] => {
    const waits = run.interrupts !== undefined && run.interrupts.length > 0;
    // A watcher would take an earlier run's end for its own run's. A waiting interrupt is sent anyway.
    if (!isSent(run.turn, opening, filter) && !(run.runId === opening.waitingRunId && waits)) return [];
    return endEventsOf(run).filter((event) => event.seq > opening.since && filter.matches(event));
  };

  /** Whether another run was created, or begins within `RUN_STARTED_WITHIN_MS`. */
  const isFollowed = async (turn: number, opening: Opening, place: Place): Promise<boolean> => {
    if (opening.hasEndedJustNow && place.awaitsEnd(turn)) return false;
    await Promise.race([ahead(), delay(RUN_STARTED_WITHIN_MS, undefined, { signal })]);
    const newest = await patiently(() => repository.newestRun(threadId));
    return newest === undefined || newest.turn !== opening.newestTurn || newest.unfinished > 0;
  };

  /**
   * The JavaScript SDK subscribes before it starts a run and takes the first end for that run's. So an earlier run's
   * end waits for a new run; waiting interrupts are sent at once.
   */
  async function* publishEnd(
    run: EndedRun,
    opening: Opening,
    place: Place,
  ): AsyncGenerator<ThreadEvent[], void> {
    let events = endsOf(run, opening);
    const questions = events.filter(({ method }) => method === "input.requested");
    if (questions.length > 0 && run.turn > opening.endedTurn) await place.whenDataTaken(run.turn, signal);
    if (isSentAgain(run.turn, opening) && events.length > 0 && !filter.isWatcher) {
      if (questions.length > 0) yield questions;
      events = (await isFollowed(run.turn, opening, place)) ? [] : events.slice(questions.length);
    }
    if (events.length > 0) place.endSent(run.turn);
    yield events;
  }

  const ownEventsOf = ({ runId, run, events }: ThreadEvents, opening: Opening): ThreadEvent[] => {
    const sent: ThreadEvent[] = [];
    for (const event of events) {
      const { threadSeq = 0 } = event;
      // The next attempt sends its interrupts again.
      if (event.event === "metadata") interrupted = undefined;
      if (event.event === INTERRUPTED_EVENT) interrupted = { runId, sent: event.data };
      if (threadSeq <= opening.since) continue;
      if (event.event === "metadata" && !isSent(turnOf(threadSeq), opening, filter)) continue;
      const made = toThreadEvent(run, event);
      if (made !== undefined && filter.matches(made)) sent.push(made);
    }
    return sent;
  };

  const endOf = async ({ runId, run }: ThreadEvents): Promise<EndedRun> => {
    const sent = interrupted?.runId === runId ? interrupted.sent : undefined;
    interrupted = undefined;
    const ended = endedRun(run, await rowOf(runId), sent);
    place?.reached(ended.turn);
    return ended;
  };

  /**
   * A lost reader's run has moved to another server, or was deleted with its thread. Only a deleted run gets an end
   * here; else the connection drops and the client reconnects.
   */
  const endOfGone = async (
    run: BegunRun | undefined,
    opening: Opening,
  ): Promise<ThreadEvent[] | undefined> => {
    if (run === undefined || (await rowOf(run.runId)) !== undefined) return undefined;
    return endsOf(endedRun(run, undefined), opening);
  };

  async function* read(): AsyncGenerator<Sent, "ended" | "lost", undefined> {
    await patiently(() => untilSeen(signal));
    if (signal.aborted) return "ended";
    // A reader without access would delay the thread's other connections.
    place = audiences.join(threadId, { isWatcher: filter.isWatcher, hasFlushed, openedAt });
    let opening = await patiently(open);
    if (signal.aborted) return "ended";
    thread = hub.readThread(threadId, opening.after, "protocol", {
      endedRunId: opening.waitingRunId,
      caller: options.caller,
    });
    yield { events: [], upTo: Math.max(opening.after, opening.since) };
    let current: BegunRun | undefined;
    let isRecreated = false;
    /** A recreated thread has lower ids than before, for which no other subscription must wait. */
    const sent = (events: ThreadEvent[], upTo: number): Sent => ({
      events,
      upTo: isRecreated ? Infinity : upTo,
    });
    for (;;) {
      const news: Awaited<ReturnType<ThreadReader["next"]>> = await (upcoming ?? thread.next());
      upcoming = undefined;
      if (news === "lost") {
        const end = await endOfGone(current, opening);
        if (end === undefined || current === undefined) return news;
        // A cut loses data that is being written, so this connection goes on.
        thread.skip();
        yield sent(end, lastSeqOf(current.turn));
        current = undefined;
        continue;
      }
      if (news === "ended") return news;
      if (news === "recreated") {
        opening = NOTHING_YET;
        current = undefined;
        isRecreated = true;
        yield sent([], Infinity);
        continue;
      }
      if (news.runId !== current?.runId) {
        if (!(await patiently(options.isStillSeen))) return "lost";
        place.began(news.run.turn);
      }
      current = news.run;
      if (news.isOver) {
        for await (const events of publishEnd(await endOf(news), opening, place)) yield sent(events, -1);
        yield sent([], lastSeqOf(news.run.turn));
      } else yield sent(ownEventsOf(news, opening), news.events.at(-1)?.threadSeq ?? 0);
    }
  }

  const reading = read();
  return {
    async next() {
      try {
        return (await reading.next()).value;
      } catch (error) {
        // After `close`, nobody receives the error.
        if (signal.aborted) return "ended";
        throw error;
      }
    },
    close() {
      closing.abort();
      place?.leave();
      thread?.close();
      options.onClose();
    },
  };
};
