import { EventType, type Event } from "@ag-ui/core";
import type { RunReader } from "../../engine/events/readers/channel-reader.ts";
import type { EventReader, SentEvent } from "../../engine/events/transports/event-sink.ts";
import { refusalOf } from "../../http/errors.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";
import type { CallEvent } from "../calls/events.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { Translation } from "./translation.ts";

export interface ReaderParts {
  translation: Translation;
  /** Undefined if no run is in progress. */
  run: RunReader | undefined;
  slicer: TimeSlicer;
  outcome(signal: AbortSignal): Promise<Outcome>;
}

const sentEvent = (seq: number, event: Event): SentEvent => ({
  seq,
  event: event.type,
  data: JSON.stringify(event),
});

/** A run that was deleted while it was read, for example. Anything else is our fault. */
const failureOf = (error: unknown): Event => {
  const refusal = refusalOf(error);
  if (refusal === undefined) throw error;
  return { type: EventType.RUN_ERROR, message: refusal.detail };
};

/** RUN_STARTED, the events of the run, and the end. */
export const createAgUiReader = ({ translation, run, slicer, outcome }: ReaderParts): EventReader => {
  const gone = new AbortController();
  let seq = 0;

  async function* events(): AsyncGenerator<Event[], "ended" | "lost"> {
    yield [translation.begin()];
    for (;;) {
      const read = run === undefined ? "ended" : await run.next();
      if (gone.signal.aborted) return "ended";
      if (read === "lost") return read;
      if (read === "ended") break;
      const batch: Event[] = [];
      for (const { seq: id, event, data } of read) {
        await slicer.next();
        const parsed = { seq: id, event, data: JSON.parse(data) } as CallEvent;
        for await (const translated of translation.translate(parsed)) batch.push(translated);
      }
      if (batch.length > 0) yield batch;
    }
    const end: Event[] = [];
    try {
      for await (const event of translation.finish(await outcome(gone.signal))) end.push(event);
    } catch (error) {
      end.push(failureOf(error));
    }
    yield end;
    return "ended";
  }

  const batches = events();
  return {
    async next() {
      const { value } = await batches.next();
      if (typeof value === "string" || value === undefined) return value ?? "ended";
      return value.map((event) => sentEvent(seq++, event));
    },
    close() {
      gone.abort();
      run?.close();
    },
  };
};

/** The answer to a request that the protocol allows, but that can't be carried out. */
export const createRefusal = (translation: Translation, message: string, code: string): EventReader => {
  const events: Event[] = [translation.begin(), { type: EventType.RUN_ERROR, message, code }];
  let isRead = false;
  return {
    async next() {
      if (isRead) return "ended";
      isRead = true;
      return events.map((event, seq) => sentEvent(seq, event));
    },
    close: () => undefined,
  };
};
