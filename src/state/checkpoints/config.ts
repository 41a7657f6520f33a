import type { RunnableConfig } from "@langchain/core/runnables";
import { isUuid } from "../../platform/lib/ids.ts";
import { threadKey } from "./thread-key.ts";

/** Separators of the statement's texts. No name of a node contains them. */
const SEPARATORS = ["\u0000", "\u0001", "\u001b", "\u001d", "\u001e", "\u001f", "\n"];

export interface ConfiguredCheckpoint {
  /** As the graph gave it. */
  threadId: string;
  /** The id in the tables, see thread-key.ts. */
  key: string;
  checkpointNs: string;
  checkpointId: string | undefined;
}

export const configurable = (config: RunnableConfig): Record<string, unknown> => config.configurable ?? {};

export const checkpointOf = (config: RunnableConfig): ConfiguredCheckpoint | undefined => {
  const { thread_id: threadId, checkpoint_ns, checkpoint_id, thread_ts } = configurable(config);
  if (typeof threadId !== "string" || threadId === "") return undefined;
  const id = checkpoint_id || thread_ts;
  return {
    threadId,
    key: threadKey(threadId),
    checkpointNs: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    checkpointId: typeof id === "string" ? id : undefined,
  };
};

export const placeOf = (threadId: string, checkpointNs: string, checkpointId: string): RunnableConfig => ({
  configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: checkpointId },
});

/** A client may ask for any id. */
export const isReadable = ({ checkpointNs, checkpointId }: ConfiguredCheckpoint): boolean =>
  !checkpointNs.includes("\u0000") && (checkpointId === undefined || isUuid(checkpointId));

export const requireCheckpoint = (config: RunnableConfig): ConfiguredCheckpoint => {
  const configured = checkpointOf(config);
  if (configured === undefined)
    throw new Error("A checkpoint can't be stored without a thread_id in config.configurable.");
  requireSeparable("checkpoint namespace", configured.checkpointNs);
  return configured;
};

export const requireSeparable = (name: string, text: string): void => {
  if (SEPARATORS.some((separator) => text.includes(separator))) {
    throw new Error(`A ${name} can't hold control characters.`);
  }
};

export const requireUuid = (checkpointId: string): void => {
  if (!isUuid(checkpointId)) throw new Error(`The checkpoint id '${checkpointId}' is not a UUID.`);
};
