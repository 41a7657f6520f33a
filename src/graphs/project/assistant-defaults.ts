import type { JsonObject } from "../../platform/lib/json.ts";

/** For the graph's default assistant. */
export interface GraphDefaults {
  config: JsonObject;
  context: JsonObject;
  /** Questions to begin with, for user interfaces. */
  starters: readonly string[];
}

export const assistantDefaults = (
  entries: readonly { id: string; defaults?: GraphDefaults | undefined }[],
): Readonly<Record<string, GraphDefaults>> =>
  Object.fromEntries(
    entries.map(({ id, defaults = { config: {}, context: {}, starters: [] } }) => [id, defaults]),
  );
