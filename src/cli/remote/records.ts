import type { JsonObject, JsonValue } from "../../lib/json.ts";

/** An object of an answer, not null and no list. */
export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
