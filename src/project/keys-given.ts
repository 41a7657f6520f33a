import type { ProjectKeys } from "../config/project-keys.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const withKey = (object: JsonObject, path: readonly string[], value: JsonValue): JsonObject => {
  const [key = "", ...rest] = path;
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = object[key];
  return { ...object, [key]: withKey(isObject(inner) ? inner : {}, rest, value) };
};

/** What a file says, and what was given over it. A file that is no object stays as it is. */
export const withKeys = (file: unknown, given: ProjectKeys): unknown => {
  if (!isObject(file)) return file;
  // The whole key first, then parts of it.
  const paths = Object.keys(given).sort((a, b) => a.split(".").length - b.split(".").length);
  return paths.reduce((object, path) => withKey(object, path.split("."), given[path] ?? null), file);
};
