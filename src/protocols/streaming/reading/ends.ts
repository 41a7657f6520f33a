import type { JsonObject } from "../../../platform/lib/json.ts";
import type { RunStatus } from "../../../platform/database/tables.ts";
import { beforeTurn } from "../../../engine/events/event-ids.ts";
import type { ThreadEvent } from "./frames.ts";
import type { BegunRun } from "../../../engine/events/readers/thread-reader.ts";
import type { EndedRow } from "../repository.ts";

export interface Interrupt {
  id?: string;
  value?: unknown;
  ns?: unknown;
}

export interface EndedRun {
  runId: string;
  /** Empty if the run was rolled back before it began. */
  graphId: string;
  /** Of the newest attempt. */
  turn: number;
  /** `gone`: rolled back, or deleted with its thread. */
  status: Exclude<RunStatus, "pending" | "running"> | "gone";
  error: JsonObject | null;
  /** Milliseconds since 1970. */
  endedAt: number;
  /** Empty if the run stopped before or after a node. */
  interrupts: readonly Interrupt[] | undefined;
}

/** SDKs (1.12.9 and later) read the run's id from such an id. */
const synthesizedId = (runId: string, what: string): string => `synth:${runId}:${what}`;

/** One id per attempt, because clients drop events with a known id, whatever their `seq`. */
export const runningId = (runId: string, attempt: number): string =>
  synthesizedId(runId, attempt === 1 ? "running" : `running:${attempt}`);

export const lastSeqOf = (turn: number): number => beforeTurn(turn + 1);

/** The last ids of a turn are reserved for its end. */
export const END_EVENTS_AT_MOST = 10_000;

interface End {
  what: string;
  method: string;
  namespace: readonly string[];
  data: unknown;
}

const namespaceOfInterrupt = ({ ns }: Interrupt): string[] =>
  Array.isArray(ns) && ns.every((segment) => typeof segment === "string") ? ns : [];

const request = (interrupt: Interrupt, index: number): End => {
  const id = interrupt.id ?? String(index);
  const value = interrupt.value ?? null;
  return {
    what: `input:${id}`,
    method: "input.requested",
    namespace: namespaceOfInterrupt(interrupt),
    // JavaScript reads `payload`, Python `value`.
    data: { interrupt_id: id, payload: value, value },
  };
};

/** The SDK reads `reason`, `interrupt_ids` and `pending_ids` of a refused strict resume. */
const failure = ({ error, message, ...more }: JsonObject): object => {
  const name = typeof error === "string" ? error : "Error";
  return { error: typeof message === "string" && message !== "" ? message : name, ...more };
};

/**
 * Some ends have two events: Python does not end at `interrupted`, and JavaScript shows `failed` as an error.
 * JavaScript uses the first event, Python the second. See docs/decisions/027-replay-and-ends-of-event-streaming.md.
 */
const endsIn = ({ status, error, interrupts, graphId }: EndedRun): End[] => {
  const lifecycle = (event: string, more: object = {}): End => ({
    what: event,
    method: "lifecycle",
    namespace: [],
    data: { event, ...(graphId !== "" && { graph_name: graphId }), ...more },
  });
  const requests = (interrupts ?? []).slice(0, END_EVENTS_AT_MOST - 2).map(request);
  switch (status) {
    case "success":
      if (interrupts === undefined) return [lifecycle("completed")];
      if (requests.length > 0) return [...requests, lifecycle("interrupted")];
      return [lifecycle("interrupted"), lifecycle("completed")];
    case "interrupted":
      return [
        ...requests,
        lifecycle("interrupted"),
        lifecycle("failed", { error: "The run was cancelled." }),
      ];
    case "gone":
      return [lifecycle("interrupted"), lifecycle("failed", { error: "The run was rolled back." })];
    default:
      return [lifecycle("failed", failure(error ?? {}))];
  }
};

/** The same on every connection and server. */
export const endEventsOf = (run: EndedRun): ThreadEvent[] => {
  const ends = endsIn(run);
  const first = lastSeqOf(run.turn) - ends.length + 1;
  return ends.map(({ what, method, namespace, data }, index) => ({
    seq: first + index,
    eventId: synthesizedId(run.runId, what),
    method,
    namespace,
    params: JSON.stringify({ namespace, timestamp: run.endedAt, data }),
  }));
};

const interruptsOf = (sent: string | undefined, { waiting }: EndedRow): Interrupt[] | undefined => {
  if (sent !== undefined) return JSON.parse(sent) as Interrupt[];
  return waiting === null ? undefined : (Object.values(waiting).flat() as Interrupt[]);
};

/** `sent`: the interrupts that the run sent on this wire, as JSON; else the thread's interrupts count. */
export const endedRun = (
  { runId, graphId, turn }: BegunRun,
  row: EndedRow | undefined,
  sent?: string,
): EndedRun => {
  if (row === undefined) {
    return { runId, graphId, turn, status: "gone", error: null, endedAt: Date.now(), interrupts: undefined };
  }
  const { status, error, endedAt } = row;
  if (status === "pending" || status === "running") throw new Error(`Run ${runId} has not ended.`);
  return {
    runId,
    graphId,
    turn: row.turn,
    status,
    error,
    endedAt: Math.round(endedAt),
    interrupts: interruptsOf(sent, row),
  };
};
