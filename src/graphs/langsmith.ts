import { setTimeout as delay } from "node:timers/promises";
import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { Logger } from "../platform/lib/logger.ts";
import { createTraceDelivery, type Fetch } from "./langsmith-delivery.ts";
import { isTracingOn } from "./lazy-run-trees.ts";
import { GraphLoadError, messageOf } from "./project/langgraph-json.ts";

/** Batches must not wait inside the client, where nothing limits them: `langsmith-delivery.ts` does. */
const BATCHES_AT_ONCE = 1_000;
/** Less than the time that a graph process has to close. */
const FLUSHED_WITHIN_MS = 3_000;

/** `langsmith_tracer` of a run. */
export interface ChosenTracer {
  project_name?: string | undefined;
  example_id?: string | undefined;
}

/** The parts of `langsmith` (0.12.0) that are set here. Other versions may ignore them. */
interface Client {
  readonly failedTracesDir?: string;
  blockOnRootRunFinalization?: boolean;
  fetchImplementation?: Fetch;
  batchIngestCaller?: { queue?: { concurrency?: number } };
}
interface Tracer extends BaseCallbackHandler {
  readonly projectName: string;
  readonly client: Client;
}
type Replica = readonly [project: string, updates?: { reference_example_id: string | undefined }];
interface TracerModule {
  LangChainTracer: new (fields?: { replicas: Replica[] }) => Tracer;
}
interface PromisesModule {
  awaitAllCallbacks(): Promise<void>;
}

/** Makes a callback for one run, with the classes of one copy of LangChain. */
export type MakeTracer = (chosen: ChosenTracer) => BaseCallbackHandler;

export interface LangSmith {
  /**
   * Prepares the client of one copy of LangChain. Undefined while tracing is off.
   * @param load loads a module of this copy
   * @throws GraphLoadError if the client refuses its environment
   */
  connect(load: (specifier: string) => unknown): Promise<MakeTracer | undefined>;
  /** Sends what waits, for some seconds at most. */
  close(): Promise<void>;
}

export const createLangSmith = (logger: Logger): LangSmith => {
  const delivery = createTraceDelivery(logger);
  const flushes: (() => Promise<void>)[] = [];
  return {
    async connect(load) {
      if (!isTracingOn()) return undefined;
      const { LangChainTracer } = (await load("@langchain/core/tracers/tracer_langchain")) as TracerModule;
      const { awaitAllCallbacks } = (await load("@langchain/core/callbacks/promises")) as PromisesModule;
      const { client, projectName } = newTracer(LangChainTracer);
      // Otherwise a run waits for the delivery of its trace, because LANGCHAIN_CALLBACKS_BACKGROUND is `false`.
      client.blockOnRootRunFinalization = false;
      // A client that keeps failed batches in files has to see that they fail.
      if (client.failedTracesDir === undefined) client.fetchImplementation = delivery.fetch;
      const queue = client.batchIngestCaller?.queue;
      if (queue !== undefined) queue.concurrency = BATCHES_AT_ONCE;
      flushes.push(awaitAllCallbacks);
      return ({ project_name: project = projectName, example_id }) => {
        const chosen: Replica = [project, { reference_example_id: example_id }];
        return new LangChainTracer({
          replicas: project === projectName ? [chosen] : [chosen, [projectName]],
        });
      };
    },

    async close() {
      if (flushes.length === 0) return;
      delivery.close();
      const over = new AbortController();
      const flushed = Promise.allSettled(flushes.map((flush) => flush()));
      const isLate = await Promise.race([
        flushed.then(() => false),
        delay(FLUSHED_WITHIN_MS, true, { signal: over.signal }),
      ]);
      over.abort();
      if (isLate) logger.warn("traces were still being sent to LangSmith; the rest is lost");
    },
  };
};

const newTracer = (LangChainTracer: TracerModule["LangChainTracer"]): Tracer => {
  try {
    return new LangChainTracer();
  } catch (cause) {
    throw new GraphLoadError(`LangSmith's client can't be made: ${messageOf(cause)}.`, { cause });
  }
};
