import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";

/** `config` and `context` of a graph in langgraph.json, for its default assistant. */
export interface GraphDefaults {
  config: JsonObject;
  context: JsonObject;
}

const objectOr = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

/** By graph id. Fields of `configs` (LANGGRAPH_CONFIG) win; the dev server's format has `context` beside them. */
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
        },
      ];
    }),
  );
