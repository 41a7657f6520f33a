import type { RunReader } from "../../engine/events/readers/channel-reader.ts";
import type { JsonValue } from "../../platform/lib/json.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";

export interface CallEvent {
  /** Id within the run, in order. */
  seq: number;
  /** A stream mode, with the namespace of a subgraph: `messages|child:<id>`. */
  event: string;
  data: JsonValue;
}

/**
 * The parsed events of a run. Returns `ended` after the last one, or `lost` if events are missing: then the client must
 * be cut off, so that it resumes. Closes the reader.
 */
export async function* eventsOf(
  reader: RunReader,
  slicer: TimeSlicer,
): AsyncGenerator<CallEvent, "ended" | "lost"> {
  try {
    for (;;) {
      const events = await reader.next();
      if (typeof events === "string") return events;
      for (const { seq, event, data } of events) {
        await slicer.next();
        yield { seq, event, data: JSON.parse(data) as JsonValue };
      }
    }
  } finally {
    reader.close();
  }
}
