import { setTimeout as delay } from "node:timers/promises";
import type { NewestRun } from "../repository.ts";
import type { Place } from "./connections.ts";
import { endEventsOf, type EndedRun } from "./ends.ts";
import type { EventFilter } from "./filter.ts";
import type { ThreadEvent } from "./frames.ts";
import type { Opening } from "./opening.ts";

/** A replayed end waits this long for the client to start a run. */
const RUN_STARTED_WITHIN_MS = 1_000;

export interface EndPublisherParts {
  filter: EventFilter;
  place: Place;
  ahead(): Promise<void>;
  newestRun(): Promise<NewestRun | undefined>;
  signal: AbortSignal;
}

/** Whether the run's end is replayed to readers of data. */
const isSentAgain = (turn: number, { endedTurn, newestTurn }: Opening): boolean =>
  newestTurn !== undefined && turn >= newestTurn && turn <= endedTurn;

/** Whether the run's beginning and end are sent; its data are always sent. */
export const isSent = (
  turn: number,
  opening: Opening,
  { isWatcher }: Pick<EventFilter, "isWatcher">,
): boolean => turn > opening.endedTurn || (!isWatcher && isSentAgain(turn, opening));

/** See docs/decisions/027 and 040. */
export const createEndPublisher = ({ filter, place, ahead, newestRun, signal }: EndPublisherParts) => {
  const of = (run: EndedRun, opening: Opening): ThreadEvent[] => {
    const waits = run.interrupts !== undefined && run.interrupts.length > 0;
    // A watcher would take an earlier run's end for its own run's. A waiting interrupt is sent anyway.
    if (!isSent(run.turn, opening, filter) && !(run.runId === opening.waitingRunId && waits)) return [];
    return endEventsOf(run).filter((event) => event.seq > opening.since && filter.matches(event));
  };

  /** Whether another run was created, or begins within `RUN_STARTED_WITHIN_MS`. */
  const isFollowed = async (turn: number, opening: Opening): Promise<boolean> => {
    if (opening.hasEndedJustNow && place.awaitsEnd(turn)) return false;
    await Promise.race([ahead(), delay(RUN_STARTED_WITHIN_MS, undefined, { signal })]);
    const newest = await newestRun();
    return newest === undefined || newest.turn !== opening.newestTurn || newest.unfinished > 0;
  };

  /**
   * The JavaScript SDK subscribes before it starts a run and takes the first end for that run's. So an earlier run's
   * end waits for a new run; waiting interrupts are sent at once.
   */
  async function* publish(run: EndedRun, opening: Opening): AsyncGenerator<ThreadEvent[], void, undefined> {
    let events = of(run, opening);
    const questions = events.filter(({ method }) => method === "input.requested");
    if (questions.length > 0 && run.turn > opening.endedTurn) await place.whenDataTaken(run.turn, signal);
    if (isSentAgain(run.turn, opening) && events.length > 0 && !filter.isWatcher) {
      if (questions.length > 0) yield questions;
      events = (await isFollowed(run.turn, opening)) ? [] : events.slice(questions.length);
    }
    if (events.length > 0) place.endSent(run.turn);
    yield events;
  }

  return { of, publish };
};

export type EndPublisher = ReturnType<typeof createEndPublisher>;
