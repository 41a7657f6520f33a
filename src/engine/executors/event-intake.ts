import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import type { AttemptEvents } from "./executor.ts";
import type { Failure } from "../events/lifecycle.ts";
import type { StreamChunk } from "../events/modes.ts";
import type { GraphEnd } from "../events/protocol/subgraphs.ts";
import type { EventPublisher } from "../events/event-publisher.ts";
import type { GraphRunOptions, RunnableGraph } from "../../graphs/runnable-graph.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";

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

const HIDDEN_TAG = "langsmith:hidden";

/** Checkpoints and writes before a graph first yields: most graphs end sooner. */
const WRITES_WITHOUT_YIELD = 16;

/** A chunk of the graph, or an inner event of the mode `events`, or what waited for a checkpoint. */
type Streamed = StreamChunk | StreamEvent | (() => void);

interface EventIntakeParts {
  publisher: EventPublisher;
  sink: AttemptEvents;
  slicer: TimeSlicer;
  /** Resolves when the checkpoints so far are stored. */
  flush(): Promise<void>;
}

/**
 * Reading never waits, because LangGraph drops what is unread when a graph fails or is stopped (1.4.18). What the log and
 * the readers can't take yet waits here, and the graph waits before its next step.
 */
export const createEventIntake = ({ publisher, sink, slicer, flush }: EventIntakeParts) => {
  const observed: Observed = { values: undefined, interrupted: false, interrupts: [] };
  let waiting: Streamed[] = [];
  let publishing: Promise<void> | undefined;
  /** The log or the readers are behind. */
  let pausing: Promise<void> | undefined;
  let failure: { error: unknown } | undefined;
  let fail = (_error: unknown): void => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);
  let isOver = false;
  /** Some events were read, and will never be published. */
  let isIncomplete = false;
  let onOver = (): void => undefined;
  const over = new Promise<void>((resolve) => (onOver = resolve));
  let writesLeft = WRITES_WITHOUT_YIELD;

  const publish = (streamed: Streamed): void => {
    if (typeof streamed === "function") return streamed();
    if (!Array.isArray(streamed)) return publisher.publishInner(streamed);
    observe(observed, streamed);
    publisher.publish(streamed);
  };
  /** A client may answer the interrupt or read the state at once, so the checkpoint must be stored first. */
  const needsCheckpoint = (streamed: Streamed): boolean =>
    Array.isArray(streamed) && isInterruptChunk(streamed[2]);

  const publishWaiting = async (): Promise<void> => {
    let batch: Streamed[] = [];
    try {
      while (!isOver) {
        if (sink.needsPause) await (pausing = sink.pause());
        pausing = undefined;
        if (batch.length === 0) [batch, waiting] = [waiting.reverse(), []];
        const next = batch.pop();
        if (next === undefined) break;
        if (needsCheckpoint(next)) await flush();
        if (!isOver) publish(next);
      }
    } catch (error) {
      failure = { error };
      fail(error);
    }
    publishing = pausing = undefined;
  };
  const receive = (streamed: Streamed): void => {
    if (failure !== undefined) throw failure.error;
    if (isOver) return;
    const mustWait = publishing !== undefined || needsCheckpoint(streamed);
    if (mustWait) waiting.push(streamed);
    else publish(streamed);
    if (mustWait || sink.needsPause) publishing ??= publishWaiting();
  };

  const read = async (graph: RunnableGraph, input: unknown, options: GraphRunOptions): Promise<void> => {
    if (!publisher.throughEvents) {
      for await (const chunk of await graph.stream(input, options)) receive(publisher.wholeOf(chunk));
      return;
    }
    for await (const event of graph.streamEvents(input, { ...options, version: "v2" })) {
      if (event.run_id === options.runId && event.event === "on_chain_stream") {
        receive(publisher.wholeOf((event.data as { chunk: unknown }).chunk));
      } else if (!event.tags?.includes(HIDDEN_TAG)) receive(event);
    }
  };
  /** Resolves when everything that was read is published. Rejects if an event could not be. */
  const settled = async (): Promise<void> => {
    while (publishing !== undefined) await publishing;
    if (failure !== undefined) throw failure.error;
  };
  const caughtUp = async (): Promise<void> => {
    while (pausing !== undefined && !isOver) await Promise.race([pausing, over]);
  };
  const logged = async (): Promise<void> => {
    // LangGraph passes chunks on by promises alone, so after a turn of the loop all have been read.
    do {
      await new Promise(setImmediate);
      await caughtUp();
    } while (pausing !== undefined && !isOver);
    if (isIncomplete) throw new Error("The events of a step were dropped, so its checkpoint is not stored.");
    await sink.logged();
  };

  return {
    observed: observed as Readonly<Observed>,
    settled,

    /** Later chunks don't wait. */
    publishWhen(readable: Promise<void> | undefined, publish: () => void): void {
      if (readable === undefined) return publish();
      void readable
        .then(() => receive(publish))
        .catch((error: unknown) => {
          failure ??= { error };
          fail(error);
        });
    },
    async execute(graph: RunnableGraph, input: unknown, options: GraphRunOptions): Promise<void> {
      await Promise.race([read(graph, input, options), failed]);
      await settled();
    },
    /** Ignores later chunks. `undefined`: the run continues in another attempt. */
    end(how: GraphEnd | undefined, why?: Failure): void {
      if (!isOver && how !== undefined) publisher.end(how, why);
      isIncomplete ||= publishing !== undefined;
      isOver = true;
      waiting = [];
      onOver();
    },
    /** A graph that goes on would fill the memory with events. */
    beforeNextStep: (): Promise<void> | undefined => {
      if (pausing !== undefined) return caughtUp();
      if (writesLeft === 0) return slicer.next();
      writesLeft -= 1;
      return undefined;
    },
    /** Events must be in the log before the checkpoint that follows them. */
    beforeWrite: (): Promise<void> | undefined => (sink.hasLog ? logged() : undefined),
  };
};

export type EventIntake = ReturnType<typeof createEventIntake>;
