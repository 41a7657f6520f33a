import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { Logger } from "../platform/lib/logger.ts";
import { within } from "../platform/lib/within.ts";
import { isTracingOn } from "./lazy-run-trees.ts";
import { GraphLoadError, messageOf } from "./project/langgraph-json.ts";

const BACKGROUND = "LANGCHAIN_CALLBACKS_BACKGROUND";
/** Less than the time that a graph process has to close. */
const FLUSHED_WITHIN_MS = 3_000;

/** `langsmith_tracer` of a run. */
export interface ChosenTracer {
  project_name?: string | undefined;
  example_id?: string | undefined;
}

interface Tracer extends BaseCallbackHandler {
  readonly projectName: string;
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
  const flushes: (() => Promise<void>)[] = [];
  return {
    async connect(load) {
      if (!isTracingOn()) return undefined;
      const { LangChainTracer } = (await load("@langchain/core/tracers/tracer_langchain")) as TracerModule;
      const { awaitAllCallbacks } = (await load("@langchain/core/callbacks/promises")) as PromisesModule;
      const { projectName } = newTracer(LangChainTracer);
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
      await within(FLUSHED_WITHIN_MS, Promise.allSettled(flushes.map((flush) => flush()))).catch(() =>
        logger.warn("traces were still being sent to LangSmith; the rest is lost"),
      );
    },
  };
};

/** LangChain makes one client for all tracers, and reads this variable then. With `false`, runs wait for their traces. */
const newTracer = (LangChainTracer: TracerModule["LangChainTracer"]): Tracer => {
  const { env } = process;
  const before = env[BACKGROUND];
  try {
    env[BACKGROUND] = "true";
    return new LangChainTracer();
  } catch (cause) {
    throw new GraphLoadError(`LangSmith's client can't be made: ${messageOf(cause)}.`, { cause });
  } finally {
    if (before === undefined) delete env[BACKGROUND];
    else env[BACKGROUND] = before;
  }
};
