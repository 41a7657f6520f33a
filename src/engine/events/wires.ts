/**
 * Streams of runs ("first") and event streaming by thread ("protocol") share a run's channel, log and
 * numbering; a reader sees the events of one wire.
 */
export type Wire = "first" | "protocol";

/** The protocol's method follows. */
export const PROTOCOL_EVENT_PREFIX = "protocol:";

/**
 * The attempt's pending interrupts as a JSON list, empty for a static interrupt. Internal: readers turn it
 * into events at the run's end.
 */
export const INTERRUPTED_EVENT = `${PROTOCOL_EVENT_PREFIX}interrupted`;

const OF_BOTH = new Set(["metadata", "error"]);

export const isProtocolEvent = (event: string): boolean => event.startsWith(PROTOCOL_EVENT_PREFIX);

export const isOfWire = (event: string, wire: Wire): boolean =>
  OF_BOTH.has(event) || isProtocolEvent(event) === (wire === "protocol");
