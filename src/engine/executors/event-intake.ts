import type { AttemptEvents } from "./executor.ts";
import { ValueTooLargeError } from "../../platform/domain/errors.ts";
import type { Failure } from "../events/lifecycle.ts";
import type { StreamChunk } from "../events/modes.ts";
import type { GraphEnd } from "../events/protocol/subgraphs.ts";
import type { EventPublisher } from "../events/event-publisher.ts";
import type { GraphRunOptions, RunnableGraph } from "../../graphs/runnable-graph.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
interface Observed {
  values: unknown;
  interrupted: boolean;
  interrupts: unknown[];
}

const isInterruptChunk = (payload: unknown): payload is { __interrupt__: unknown[] } =>
  typeof payload === "object" && payload !== null && "__interrupt__" in payload;

/** Notes the graph's result as it passes by, so that ending a run needs no read of the state. */
const observe = (observed: Observed, [namespace, mode, payload]: StreamChunk): void => {
  if (mode !== "values" || namespace.length > 0) return;
  if (isInterruptChunk(payload)) {
    observed.interrupted = true;
    observed.interrupts.push(...payload.__interrupt__);
  } else observed.values = payload;
};

/** Hears what a graph streams until the attempt is over: tells it, and notes the result. */
export const createEventIntake = (publisher: EventPublisher) => {
  const observed: Observed = { values: undefined, interrupted: false, interrupts: [] };
  let isOver = false;
  return {
    observed: observed as Readonly<Observed>,
    receive(chunk: unknown): void {
      if (isOver) return;
      const whole = publisher.wholeOf(chunk);
      observe(observed, whole);
      publisher.publish(whole);
    },
    /** What comes from now on is not heard. `undefined`: the run goes on elsewhere, and its next attempt tells more. */
    end(how: GraphEnd | undefined, why?: Failure): void {
      if (!isOver && how !== undefined) publisher.end(how, why);
      isOver = true;
    },
  };
};

export type EventIntake = ReturnType<typeof createEventIntake>;

/** Refuses events that are too large: whoever reads them has each in memory as a whole, here and at the client. */
export const boundEvents = (sink: AttemptEvents, charactersAtMost: number): AttemptEvents => ({
  emit(event, data, checkpoint) {
    const bounded = (): string => {
      const text = data();
      if (text.length <= charactersAtMost) return text;
      throw new ValueTooLargeError(`An event '${event}'`, charactersAtMost, "EVENT_MAX_MB");
    };
    sink.emit(event, bounded, checkpoint);
  },
  get needsPause() {
    return sink.needsPause;
  },
  pause: () => sink.pause(),
  get hasLog() {
    return sink.hasLog;
  },
  logged: () => sink.logged(),
});

const HIDDEN_TAG = "langsmith:hidden";

/**
 * What `streamEvents` tells: chunks of the run's own stream, which are for the modes that were asked for beside `events`,
 * and events of what happens inside, but for those that LangGraph marks as its own affair.
 */
const readEvents = async (
  graph: RunnableGraph,
  input: unknown,
  options: GraphRunOptions,
  sink: AttemptEvents,
  { onChunk, pause }: { onChunk: (chunk: unknown) => void; pause: () => Promise<void> },
): Promise<void> => {
  for await (const event of graph.streamEvents(input, { ...options, version: "v2" })) {
    if (event.run_id === options.runId && event.event === "on_chain_stream") {
      onChunk((event.data as { chunk: unknown }).chunk);
    } else if (!event.tags?.includes(HIDDEN_TAG)) sink.emit("events", () => toWireJson(event));
    if (sink.needsPause) await pause();
  }
};

/** What hears a graph. */
export interface Listening {
  publisher: EventPublisher;
  intake: EventIntake;
  sink: AttemptEvents;
  /** Resolves when the sink takes more. */
  pause(): Promise<void>;
  /** Resolves when all checkpoints of the attempt are stored. */
  flush(): Promise<void>;
}

/** Executes a graph until it ends, and hears all that it streams. Throws what the graph throws. */
export const executeGraph = async (
  graph: RunnableGraph,
  input: unknown,
  options: GraphRunOptions,
  { publisher, intake, sink, pause, flush }: Listening,
): Promise<void> => {
  if (publisher.throughEvents)
    return await readEvents(graph, input, options, sink, {
      onChunk: (chunk) => intake.receive(chunk),
      pause,
    });
  const stream = await graph.stream(input, options);
  for await (const chunk of stream) {
    // Who sees a question may answer it, or read the state, at once: it must be stored by then.
    if (isInterruptChunk(publisher.wholeOf(chunk)[2])) await flush();
    intake.receive(chunk);
    if (sink.needsPause) await pause();
  }
};

/** Checkpoints and writes of tasks after which a graph is asked to make room for others: most have ended by then. */
const WRITES_WITHOUT_YIELD = 16;

/** When a graph has to wait before its next step, and what it reached before it is stored. */
export const createPauses = (sink: AttemptEvents, slicer: TimeSlicer) => {
  /** While who streams the graph waits, the graph must, too: what it streams meanwhile is kept for it. */
  let pausing: Promise<void> | undefined;
  let writesLeft = WRITES_WITHOUT_YIELD;

  const logged = async (): Promise<void> => {
    // LangGraph hands chunks on by promises alone: after a turn of the loop all were heard, unless hearing them pauses.
    do {
      await new Promise(setImmediate);
      await pausing;
    } while (pausing !== undefined);
    await sink.logged();
  };

  return {
    async pause(): Promise<void> {
      pausing = sink.pause();
      await pausing;
      pausing = undefined;
    },
    beforeNextStep(): Promise<void> | undefined {
      if (writesLeft === 0) return pausing ?? slicer.next();
      writesLeft -= 1;
      return undefined;
    },
    /** What the graph streamed before this call has to be in the log, if there is one. */
    beforeWrite: (): Promise<void> | undefined => (sink.hasLog ? logged() : undefined),
  };
};
