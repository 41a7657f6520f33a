import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";

/** `config` and `context` of a graph in langgraph.json: those of the assistant that its id stands for. */
export interface GraphDefaults {
  config: JsonObject;
  context: JsonObject;
}

const objectOr = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

/**
 * By graph id. `configs` are those of LANGGRAPH_CONFIG, in which the dev server has the context beside the fields of a config;
 * they win, field by field.
 */
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
