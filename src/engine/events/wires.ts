/**
 * Two wires publish the same runs: streams of runs ("first"), and event streaming by thread ("protocol").
 * Their events share a run's channel, log and numbering; a reader sees the events of one wire.
 */
export type Wire = "first" | "protocol";

/** Prefix of an event of the protocol wire alone; the protocol's method follows. */
export const PROTOCOL_EVENT_PREFIX = "protocol:";

/**
 * The attempt's pending interrupts: a JSON list, empty for a static interrupt. Readers turn it into events at
 * the run's end; clients do not get it.
 */
export const INTERRUPTED_EVENT = `${PROTOCOL_EVENT_PREFIX}interrupted`;

/** Published by every attempt, for readers of either wire. */
const OF_BOTH = new Set(["metadata", "error"]);

export const isProtocolEvent = (event: string): boolean => event.startsWith(PROTOCOL_EVENT_PREFIX);

export const isOfWire = (event: string, wire: Wire): boolean =>
  OF_BOTH.has(event) || isProtocolEvent(event) === (wire === "protocol");
