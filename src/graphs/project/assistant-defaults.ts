import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";

/** For the graph's default assistant. */
export interface GraphDefaults {
  config: JsonObject;
  context: JsonObject;
  /** Questions to begin with, for user interfaces. */
  starters: readonly string[];
}

const objectOr = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

/** Fields of `configs` (LANGGRAPH_CONFIG) win. There, as in the dev server, `context` is beside the config's fields. */
export const assistantDefaults = (
  entries: readonly { id: string; defaults?: GraphDefaults | undefined }[],
  configs: Readonly<Record<string, JsonObject>>,
): Readonly<Record<string, GraphDefaults>> =>
  Object.fromEntries(
    entries.map(({ id, defaults }) => {
      const { context, ...config } = ownField(configs, id) ?? {};
      return [
        id,
        {
          config: { ...defaults?.config, ...config },
          context: { ...defaults?.context, ...objectOr(context) },
          starters: defaults?.starters ?? [],
        },
      ];
    }),
  );
