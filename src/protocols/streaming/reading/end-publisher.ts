import { setTimeout as delay } from "node:timers/promises";
import type { NewestRun } from "../repository.ts";
import type { Place } from "./connections.ts";
import { endEventsOf, type EndedRun } from "./ends.ts";
import type { EventFilter } from "./filter.ts";
import type { ThreadEvent } from "./frames.ts";
import type { Opening } from "./opening.ts";

/** How long a client that is told what it has missed is waited for to start a run, before it is told the end of the last one. */
const RUN_STARTED_WITHIN_MS = 1_000;

export interface EndPublisherParts {
  filter: EventFilter;
  place: Place;
  /** Resolves when the thread tells something more. */
  ahead(): Promise<void>;
  newestRun(): Promise<NewestRun | undefined>;
  /** Nobody reads any more. */
  signal: AbortSignal;
}

/** Whether the run had ended before, and its end is told again to who reads data. */
const isSentAgain = (turn: number, { endedTurn, newestTurn }: Opening): boolean =>
  newestTurn !== undefined && turn >= newestTurn && turn <= endedTurn;

/** Whether a run's beginning and end are told; its data always are. */
export const isSent = (
  turn: number,
  opening: Opening,
  { isWatcher }: Pick<EventFilter, "isWatcher">,
): boolean => turn > opening.endedTurn || (!isWatcher && isSentAgain(turn, opening));

/** How and when a subscription is told that runs have ended: docs/decisions/027 and 040. */
export const createEndPublisher = ({ filter, place, ahead, newestRun, signal }: EndPublisherParts) => {
  /** What is told of a run's end, without a wait. */
  const of = (run: EndedRun, opening: Opening): ThreadEvent[] => {
    const waits = run.interrupts !== undefined && run.interrupts.length > 0;
    // Who only watches would take the end of an earlier run for that of his own; but not what still waits for an answer.
    if (!isSent(run.turn, opening, filter) && !(run.runId === opening.waitingRunId && waits)) return [];
    return endEventsOf(run).filter((event) => event.seq > opening.since && filter.matches(event));
  };

  /** Whether a run has been created since, or is while its client is waited for. */
  const isFollowed = async (turn: number, opening: Opening): Promise<boolean> => {
    if (opening.hasEndedJustNow && place.awaitsEnd(turn)) return false;
    await Promise.race([ahead(), delay(RUN_STARTED_WITHIN_MS, undefined, { signal })]);
    const newest = await newestRun();
    return newest === undefined || newest.turn !== opening.newestTurn || newest.unfinished > 0;
  };

  /**
   * JavaScript that subscribes before it starts a run takes the end that comes first for its own run's, so that of an earlier run waits
   * whether one begins. What still waits for an answer does not.
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
