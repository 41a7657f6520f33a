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

/** Saves a read of the state when the run ends. */
const observe = (observed: Observed, [namespace, mode, payload]: StreamChunk): void => {
  if (mode !== "values" || namespace.length > 0) return;
  if (isInterruptChunk(payload)) {
    observed.interrupted = true;
    observed.interrupts.push(...payload.__interrupt__);
  } else observed.values = payload;
};

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
    /** Ignores later chunks. `undefined`: the run continues in another attempt. */
    end(how: GraphEnd | undefined, why?: Failure): void {
      if (!isOver && how !== undefined) publisher.end(how, why);
      isOver = true;
    },
  };
};

type EventIntake = ReturnType<typeof createEventIntake>;

/** Refuses events above the bound: server and client hold each event in memory. */
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

interface Listening {
  publisher: EventPublisher;
  intake: EventIntake;
  sink: AttemptEvents;
  pause(): Promise<void>;
  flush(): Promise<void>;
}

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
    // A client may answer the interrupt or read the state at once, so the checkpoint must be stored first.
    if (isInterruptChunk(publisher.wholeOf(chunk)[2])) await flush();
    intake.receive(chunk);
    if (sink.needsPause) await pause();
  }
};

/** Checkpoints and writes before a graph first yields: most graphs end sooner. */
const WRITES_WITHOUT_YIELD = 16;

export const createPauses = (sink: AttemptEvents, slicer: TimeSlicer) => {
  /** The current pause: a graph that goes on would fill the memory with events. */
  let pausing: Promise<void> | undefined;
  let writesLeft = WRITES_WITHOUT_YIELD;

  const logged = async (): Promise<void> => {
    // LangGraph passes chunks on by promises alone, so after a turn of the loop the intake has all chunks,
    // unless it pauses.
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
    /** Events must be in the log before the checkpoint that follows them. */
    beforeWrite: (): Promise<void> | undefined => (sink.hasLog ? logged() : undefined),
  };
};
