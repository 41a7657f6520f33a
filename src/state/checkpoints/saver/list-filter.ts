import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointListOptions } from "@langchain/langgraph-checkpoint";
import { isUuid } from "../../../platform/lib/ids.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { RowFilter } from "../read/row-statements.ts";
import { threadKey } from "../rows/thread-key.ts";
import { configurable } from "./checkpoint-config.ts";

interface ListFilter {
  threadId: string | undefined;
  rows: Omit<RowFilter, "limit">;
}

/** Undefined if no checkpoint can match: ids that are no UUIDs, names that PostgreSQL can't hold. */
export const listFilterOf = (
  config: RunnableConfig,
  options: CheckpointListOptions,
): ListFilter | undefined => {
  const { thread_id, checkpoint_ns, checkpoint_id } = configurable(config);
  const threadId = typeof thread_id === "string" ? thread_id : undefined;
  const checkpointNs = typeof checkpoint_ns === "string" ? checkpoint_ns : undefined;
  const checkpointId = namedId(checkpoint_id);
  const beforeCheckpointId = namedId(options.before?.configurable?.checkpoint_id);
  const { run_id: runId, ...metadata } = (options.filter ?? {}) as JsonObject;
  for (const id of [checkpointId, beforeCheckpointId]) if (id !== undefined && !isUuid(id)) return undefined;
  if (checkpointNs?.includes("\u0000")) return undefined;
  if (runId !== undefined && !(typeof runId === "string" && isUuid(runId))) return undefined;
  const key = threadId === undefined ? undefined : threadKey(threadId);
  return {
    threadId,
    rows: { threadId: key, checkpointNs, checkpointId, beforeCheckpointId, runId, metadata },
  };
};

const namedId = (id: unknown): string | undefined => (typeof id === "string" && id !== "" ? id : undefined);
