/** Anything that JSON can say. */
export type JsonValue =
  null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue | undefined };
export type JsonObject = { [key: string]: JsonValue | undefined };

/** Whether something is an object: not null, and no list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The same of what is known to be JSON. */
export const isJsonObject = (value: unknown): value is JsonObject => isObject(value);
