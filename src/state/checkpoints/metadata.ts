import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { JsonObject } from "../../platform/lib/json.ts";
import { TYPE } from "../values/type-key.ts";

/**
 * A caller's value would break LangGraph or this server: `parents: null` makes a state unreadable, and a counter that
 * is no number breaks a prune.
 */
const RESERVED: ReadonlySet<string> = new Set([
  "source",
  "step",
  "parents",
  "writes",
  "counters_since_delta_snapshot",
  "thread_id",
  "run_id",
  TYPE,
  "lc",
]);

export const isReservedMetadata = (key: string): boolean => RESERVED.has(key);

/** Characters of JSON, repeated in every checkpoint of a run. */
const VALUE_CHARACTERS_AT_MOST = 1_000;
const ALL_CHARACTERS_AT_MOST = 8_000;

export interface OwnMetadata {
  /** Equal in nearly all runs of an assistant; stored once, with the names. */
  common: JsonObject;
  rest: JsonObject;
}

/**
 * Values of callers never count as common, because names are kept forever. `created_by` has one value in all runs of
 * system assistants.
 */
export const ownMetadata = ({ graph_id, assistant_id, ...given }: JsonObject): OwnMetadata => {
  const common: JsonObject = {};
  if (graph_id !== undefined) common.graph_id = graph_id;
  if (assistant_id !== undefined) common.assistant_id = assistant_id;
  let characters = 0;
  const rest = Object.entries(given).filter(([key, value]) => {
    if (isReservedMetadata(key)) return false;
    if (key === "created_by" && value === "system") {
      common.created_by = value;
      return false;
    }
    const length = key.length + (JSON.stringify(value)?.length ?? 0);
    if (length > VALUE_CHARACTERS_AT_MOST || characters + length > ALL_CHARACTERS_AT_MOST) return false;
    characters += length;
    return true;
  });
  return { common, rest: Object.fromEntries(rest) };
};

/** `own`: metadata of the run; LangGraph's own win. */
export const splitMetadata = (
  { source, parents, ...given }: CheckpointMetadata,
  own: OwnMetadata,
): OwnMetadata => {
  const rest: JsonObject = { ...own.rest, ...(given as JsonObject) };
  // An update of a state repeats the metadata of the checkpoint before.
  const ownCommon = Object.entries(own.common).filter(([key]) => !Object.hasOwn(rest, key));
  const common: JsonObject = { source, ...Object.fromEntries(ownCommon) };
  const hasParents = parents !== undefined && Object.keys(parents).length > 0;
  if (parents !== undefined) (hasParents ? rest : common).parents = parents;
  return { common, rest };
};
