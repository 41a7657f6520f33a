import { EventType, type Event } from "@ag-ui/core";
import type { RunEvent } from "../../engine/events/log.ts";
import type { RunReader } from "../../engine/events/channel.ts";
import type { EventReader, SentEvent } from "../../engine/events/transports/event-sink.ts";
import { refusalOf } from "../../http/errors.ts";
import type { JsonValue } from "../../platform/lib/json.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { Translation } from "./translation.ts";

export interface ReaderParts {
  translation: Translation;
  slicer: TimeSlicer;
  /** Undefined if no run is in progress. */
  run: RunReader | undefined;
  /** Reads the run again, behind an event. */
  reopen?: (after: number) => Promise<RunReader>;
  outcome(signal: AbortSignal): Promise<Outcome>;
}

/** Losses without an event in between: this server stops, or the events are gone. */
const LOSSES_AT_MOST = 3;

const BATCH_CHARACTERS = 16 * 1024;

/** A client finds the type in the data. */
export const sentEvent = (seq: number, event: Event): SentEvent => ({
  seq,
  event: "message",
  data: JSON.stringify(event),
});

/** A run that was deleted while it was read, for example. Anything else is our fault. */
const failureOf = (error: unknown): Event => {
  const refusal = refusalOf(error);
  if (refusal === undefined) throw error;
  return { type: EventType.RUN_ERROR, message: refusal.detail };
};

/** RUN_STARTED, the events of the run, and the end. */
export const createAgUiReader = ({ translation, run, reopen, slicer, outcome }: ReaderParts): EventReader => {
  const gone = new AbortController();
  let seq = 0;
  let reader = run;
  let after = -1;
  let losses = 0;
  let isOver = false;

  /** Clients of this protocol do not reconnect by themselves. False if the events can't be read here. */
  const recover = async (): Promise<boolean> => {
    losses += 1;
    reader?.close();
    if (reopen === undefined || losses > LOSSES_AT_MOST) return false;
    reader = await reopen(after);
    if (gone.signal.aborted) reader.close();
    return true;
  };

  const translated = async ({ seq: id, event, data }: RunEvent): Promise<Event[]> => {
    await slicer.next();
    after = id;
    losses = 0;
    return await translation.translate({ seq: id, event, data: JSON.parse(data) as JsonValue });
  };

  async function* eventsOfRun(): AsyncGenerator<Event[], "ended" | "lost"> {
    while (reader !== undefined && !gone.signal.aborted) {
      const read = await reader.next();
      if (read === "ended") break;
      if (read === "lost") {
        if (await recover()) continue;
        return read;
      }
      // Small events are sent together. Each state may be large, so the next one waits until it is taken.
      let batch: Event[] = [];
      let characters = 0;
      for (const event of read) {
        batch.push(...(await translated(event)));
        if (gone.signal.aborted) return "ended";
        characters += event.event === "values" ? BATCH_CHARACTERS : event.data.length;
        if (characters < BATCH_CHARACTERS || batch.length === 0) continue;
        yield batch;
        batch = [];
        characters = 0;
      }
      if (batch.length > 0) yield batch;
    }
    return "ended";
  }

  async function* events(): AsyncGenerator<Event[], "ended" | "lost"> {
    yield [translation.begin()];
    const end: Event[] = [];
    try {
      const how = yield* eventsOfRun();
      if (how === "lost" || gone.signal.aborted) return how;
      end.push(...(await translation.finish(await outcome(gone.signal))));
    } catch (error) {
      if (gone.signal.aborted) return "ended";
      end.push(failureOf(error));
    }
    yield end;
    return "ended";
  }

  const batches = events();
  return {
    async next() {
      const { value, done } = await batches.next();
      isOver = done === true;
      if (typeof value === "string" || value === undefined) return value ?? "ended";
      return value.map((event) => sentEvent(seq++, event));
    },
    close() {
      // An abort after the end would cost as much as reading the run.
      if (!isOver) gone.abort();
      reader?.close();
    },
  };
};
