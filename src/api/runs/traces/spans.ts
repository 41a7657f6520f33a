import type { TracePart } from "../../../engine/traces/storage.ts";
import { timestamp } from "../../../platform/lib/timestamps.ts";
import type { Span, Trace } from "./schemas.ts";

type AttemptTrace = Trace["attempts"][number];
type StoredSpan = Partial<Span> & { id?: number; dropped?: number };

/** `isRunning`: the attempt goes on, so that open spans may still end. */
const spansOf = (
  parts: readonly TracePart[],
  isRunning: boolean,
): Pick<AttemptTrace, "spans" | "dropped_spans"> => {
  const spans = new Map<number, Span>();
  let dropped = 0;
  for (const { spans: text } of parts) {
    for (const { dropped: more = 0, ...stored } of JSON.parse(`[${text}]`) as StoredSpan[]) {
      dropped += more;
      if (stored.id === undefined) continue;
      const open = { parent: null, end_ms: null, status: isRunning ? "running" : "lost" } as const;
      spans.set(stored.id, { ...open, ...spans.get(stored.id), ...stored } as Span);
    }
  }
  // The end of a span whose beginning was lost has no name.
  return { spans: [...spans.values()].filter(({ name }) => name !== undefined), dropped_spans: dropped };
};

/**
 * All attempts up to `lastAttempt`, in order.
 * @param isRunning whether the last one goes on
 */
export const attemptsOf = (
  parts: readonly TracePart[],
  lastAttempt: number,
  isRunning: boolean,
): AttemptTrace[] =>
  Array.from({ length: lastAttempt }, (_, index): AttemptTrace => {
    const attempt = index + 1;
    const own = parts.filter((part) => part.attempt === attempt);
    const [first] = own;
    return {
      attempt,
      started_at: first === undefined ? null : timestamp(first.started_at),
      ...spansOf(own, isRunning && attempt === lastAttempt),
    };
  });
