import type { WatchedSink } from "../executor.ts";
import { restoreError, type DescribedError } from "./described-error.ts";
import { charactersOf, WINDOW_CHARACTERS, type EventPair } from "./messages.ts";

const BATCH_CHARACTERS = 256 * 1024;

export interface PipedSink extends WatchedSink {
  want(logged: boolean): void;
  /** Settles the oldest pending `logged`. */
  hasLogged(failure?: DescribedError): void;
  taken(characters: number): void;
}

interface Batch {
  id: number;
  events: EventPair[];
}

/**
 * One message per turn of the event loop: a message per event cost 9 microseconds in each process.
 * WINDOW_CHARACTERS bounds the memory of both processes.
 */
export const createEventPipe = (send: (batches: Batch[]) => void, askForLog: (id: number) => void) => {
  let batches = new Map<number, Batch>();
  let characters = 0;
  let isDue = false;

  const flush = (): void => {
    if (batches.size === 0) return;
    const due = [...batches.values()];
    batches = new Map();
    characters = 0;
    send(due);
  };
  const push = (id: number, pair: EventPair): void => {
    const batch = batches.get(id);
    if (batch === undefined) batches.set(id, { id, events: [pair] });
    else batch.events.push(pair);
    characters += charactersOf(pair);
    if (characters > BATCH_CHARACTERS) return flush();
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      flush();
    });
  };

  return {
    open(id: number, atOnce: { wanted: boolean; logged: boolean }): PipedSink {
      let { wanted, logged } = atOnce;
      const awaitingLog: Array<(failure?: DescribedError) => void> = [];
      let onItsWay = 0;
      let goOn: (() => void) | undefined;
      return {
        get wanted() {
          return wanted;
        },
        onWanted: () => undefined,
        want(isLogged) {
          wanted = true;
          logged = isLogged;
        },
        get hasLog() {
          return logged;
        },
        async logged() {
          flush();
          askForLog(id);
          const failure = await new Promise<DescribedError | undefined>((resolve) =>
            awaitingLog.push(resolve),
          );
          if (failure !== undefined) throw restoreError(failure);
        },
        hasLogged: (failure) => awaitingLog.shift()?.(failure),
        emit(event, data, checkpoint) {
          if (!wanted) return;
          const pair: EventPair = checkpoint === undefined ? [event, data()] : [event, data(), checkpoint];
          onItsWay += charactersOf(pair);
          push(id, pair);
        },
        get needsPause() {
          return onItsWay > WINDOW_CHARACTERS;
        },
        async pause() {
          if (onItsWay <= WINDOW_CHARACTERS / 2) return;
          await new Promise<void>((resolve) => (goOn = resolve));
        },
        taken(count) {
          onItsWay -= count;
          if (onItsWay > WINDOW_CHARACTERS / 2) return;
          goOn?.();
          goOn = undefined;
        },
      };
    },
    flush,
  };
};
