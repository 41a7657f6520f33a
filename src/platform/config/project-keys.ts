import { StartError } from "../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { ownField } from "../lib/names.ts";

/**
 * These values override langgraph.json, as in images of the hosted service. A key with a dot (`http.cors`) replaces one
 * member of an object.
 */
export type ProjectKeys = Readonly<Record<string, JsonValue>>;

const VARIABLES: Readonly<Record<string, string>> = {
  LANGSERVE_GRAPHS: "graphs",
  LANGGRAPH_STORE: "store",
  LANGGRAPH_CHECKPOINTER: "checkpointer",
  LANGGRAPH_AUTH: "auth",
  LANGGRAPH_ENCRYPTION: "encryption",
  LANGGRAPH_WEBHOOKS: "webhooks",
  LANGGRAPH_UI: "ui",
  LANGGRAPH_UI_CONFIG: "ui_config",
  LANGGRAPH_HTTP: "http",
  CORS_CONFIG: "http.cors",
  LANGGRAPH_THREAD_TTL: "checkpointer.ttl",
};
const MOUNT_PREFIX = "MOUNT_PREFIX";

export const PROJECT_VARIABLES: readonly string[] = [...Object.keys(VARIABLES), MOUNT_PREFIX];

const objectIn = (name: string, key: string, text: string): JsonObject => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new StartError(`${name} must be JSON, as '${key}' of langgraph.json: ${(error as Error).message}.`);
  }
  if (isJsonObject(value)) return value;
  throw new StartError(`${name} must be a JSON object, as '${key}' of langgraph.json.`);
};

/** A bare number is the older form of a thread's time to live, in minutes. */
const valueIn = (name: string, key: string, text: string): JsonValue =>
  name === "LANGGRAPH_THREAD_TTL" && /^\s*[\d.]+\s*$/.test(text)
    ? { default_ttl: Number(text) }
    : objectIn(name, key, text);

/** Throws StartError if a value is not a JSON object. The schema of langgraph.json checks the members. */
export const projectKeysIn = (environment: Readonly<Record<string, string | undefined>>): ProjectKeys => {
  const textOf = (name: string): string => ownField(environment, name) ?? "";
  const given = Object.entries(VARIABLES).filter(([name]) => textOf(name) !== "");
  const prefix = textOf(MOUNT_PREFIX);
  return Object.freeze({
    ...Object.fromEntries(given.map(([name, key]) => [key, valueIn(name, key, textOf(name))])),
    ...(prefix === "" ? {} : { "http.mount_prefix": prefix }),
  });
};
