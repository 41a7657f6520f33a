import type { ProjectKeys } from "../config/project-keys.ts";
import { ownField } from "../lib/names.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const withKey = (object: JsonObject, path: readonly string[], value: JsonValue): JsonObject => {
  const [key = "", ...rest] = path;
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = ownField(object, key);
  return { ...object, [key]: withKey(isObject(inner) ? inner : {}, rest, value) };
};

/** What a file says, and what was given over it. A file that is no object stays as it is. */
export const withKeys = (file: unknown, given: ProjectKeys): unknown => {
  if (!isObject(file)) return file;
  // The whole key first, then parts of it.
  const keys = Object.entries(given).map(([path, value]) => ({ path: path.split("."), value }));
  return keys
    .sort((a, b) => a.path.length - b.path.length)
    .reduce((object, { path, value }) => withKey(object, path, value), file);
};
