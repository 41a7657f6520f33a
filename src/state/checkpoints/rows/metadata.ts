/** What the metadata of a run's checkpoints hold beside what LangGraph itself puts there. */

import type { Cipher } from "../../../platform/encryption/cipher.ts";
import { CHECKPOINT_JSON, type CheckpointKey } from "../../../platform/encryption/columns.ts";
import { encryptMetadata, encryptValue } from "../../../platform/encryption/json.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { setProperty } from "../../../platform/lib/properties.ts";
import { TYPE } from "../../values/type-key.ts";

/**
 * Keys by which LangGraph and this room read a checkpoint: what a caller gives under them would be taken for theirs
 * (`parents: null` makes a state unreadable, a counter that is no number a prune).
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

/** Every checkpoint of a run repeats these: what is longer nobody filters by. Characters of JSON. */
const VALUE_CHARACTERS_AT_MOST = 1_000;
const ALL_CHARACTERS_AT_MOST = 8_000;

export interface OwnMetadata {
  /** The same in nearly all runs of an assistant, and so kept once, with the shape. */
  common: JsonObject;
  /** Stands in every checkpoint. */
  rest: JsonObject;
}

/**
 * What comes from a caller is never taken for common: each value would be kept forever. The system assistants'
 * `created_by` is one that all runs of them have.
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

/**
 * As they are stored: sealed are the chosen keys, wherever they stand, and all but what is LangGraph's own and what the run
 * has under `searchable`: the configuration is copied there, too.
 */
export const encryptOwnMetadata = (
  cipher: Cipher | undefined,
  metadata: JsonObject,
  searchable: ReadonlySet<string>,
  checkpoint: CheckpointKey,
): JsonObject => {
  if (cipher === undefined) return metadata;
  const [place] = CHECKPOINT_JSON.metadata.places(checkpoint);
  const open: JsonObject = {};
  const encrypted: JsonObject = {};
  for (const [key, value] of Object.entries(metadata)) {
    const stays =
      value === undefined || cipher.metadataKeys.has(key) || isReservedMetadata(key) || searchable.has(key);
    // Sealed once: what is sealed within is not opened.
    if (stays) setProperty(open, key, value);
    else setProperty(encrypted, key, encryptValue(cipher, value, place));
  }
  return { ...encryptMetadata(cipher, open, place), ...encrypted };
};
