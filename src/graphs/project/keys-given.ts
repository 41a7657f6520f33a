import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { ownField } from "../../platform/lib/names.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";

const withKey = (object: JsonObject, path: readonly string[], value: JsonValue): JsonObject => {
  const [key = "", ...rest] = path;
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = ownField(object, key);
  return { ...object, [key]: withKey(isJsonObject(inner) ? inner : {}, rest, value) };
};

export const withKeys = (file: unknown, given: ProjectKeys): unknown => {
  if (!isJsonObject(file)) return file;
  // Whole keys before their parts.
  const keys = Object.entries(given).map(([path, value]) => ({ path: path.split("."), value }));
  return keys
    .sort((a, b) => a.path.length - b.path.length)
    .reduce((object, { path, value }) => withKey(object, path, value), file);
};
