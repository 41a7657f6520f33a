/**
 * The newest checkpoint id is the thread's state, but LangGraph derives ids from its process's clock. An ordering
 * checkpointer replaces an id if the clock is behind (docs/decisions/047).
 */

import type { AttemptSaver } from "../state/checkpoints/types.ts";

/** The parts of LangGraph's loop (1.4.18) used here. Every new checkpoint is assigned to `checkpoint`. */
interface Loop {
  checkpoint: { id: string };
  checkpointer?: unknown;
  config?: { configurable?: Record<string, unknown> };
}

type IdOrder = Pick<AttemptSaver, "idAfterAll">;

interface LoopRunner {
  _runLoop(parameters: { loop: Loop }): Promise<unknown>;
}

/** From the symbol registry: two copies of this package may share one LangGraph. */
const GROWS_IDS = Symbol.for("threadloom.grows-ids");

/**
 * Patches the common class, because nothing else reaches subgraphs. If `_runLoop`, which is not public, is missing, the
 * checkpointer refuses a checkpoint older than its parent.
 */
export const growIds = (graph: object): void => {
  const owner = ownerOfLoop(graph);
  if (owner === undefined || GROWS_IDS in owner._runLoop) return;
  const runLoop = owner._runLoop;
  const growing: LoopRunner["_runLoop"] = function (this: unknown, parameters) {
    orderIds(parameters.loop);
    return runLoop.call(this, parameters);
  };
  owner._runLoop = Object.assign(growing, { [GROWS_IDS]: true });
};

const ownerOfLoop = (graph: object): LoopRunner | undefined => {
  for (let at: unknown = Object.getPrototypeOf(graph); at; at = Object.getPrototypeOf(at))
    if (Object.hasOwn(at, "_runLoop")) return at as LoopRunner;
  return undefined;
};

const ordersIds = (checkpointer: unknown): checkpointer is IdOrder =>
  typeof checkpointer === "object" && checkpointer !== null && "idAfterAll" in checkpointer;

/** Replaces the id at once, because task ids derive from it. */
const orderIds = (loop: Loop): void => {
  const { checkpointer } = loop;
  const threadId = loop.config?.configurable?.thread_id;
  if (!ordersIds(checkpointer) || typeof threadId !== "string") return;
  let current = loop.checkpoint;
  checkpointer.idAfterAll(threadId, current.id);
  Object.defineProperty(loop, "checkpoint", {
    configurable: true,
    enumerable: true,
    get: () => current,
    set(next: Loop["checkpoint"]) {
      if (next.id !== current.id) next.id = checkpointer.idAfterAll(threadId, next.id);
      current = next;
    },
  });
};
