/**
 * Two wires tell the same runs: the streams of runs ("first"), and event streaming by thread ("protocol"). Their events lie
 * side by side in a run's channel and log, numbered together; who reads sees those of one wire.
 */
export type Wire = "first" | "protocol";

/** Before the name of an event that is told over the protocol wire alone; behind it stands the protocol's method. */
export const PROTOCOL_EVENT_PREFIX = "protocol:";

/**
 * In which an attempt tells what it leaves waiting for an answer: a JSON list of interrupts, empty where the graph was to stop.
 * For who makes events of a run's end, and for no client.
 */
export const INTERRUPTED_EVENT = `${PROTOCOL_EVENT_PREFIX}interrupted`;

/** Told by every attempt, and a sign for readers of either wire. */
const OF_BOTH = new Set(["metadata", "error"]);

export const isProtocolEvent = (event: string): boolean => event.startsWith(PROTOCOL_EVENT_PREFIX);

/** Whether readers of a wire see an event of this name. */
export const isOfWire = (event: string, wire: Wire): boolean =>
  OF_BOTH.has(event) || isProtocolEvent(event) === (wire === "protocol");
