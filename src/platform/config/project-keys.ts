import { StartError } from "../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { ownField } from "../lib/names.ts";

/**
 * Keys of langgraph.json that the environment says, as an image of the hosted service carries them: they win over the file.
 * `http.cors`, with a dot, is one key of an object, whose others stay.
 */
export type ProjectKeys = Readonly<Record<string, JsonValue>>;

/** Variables that hold keys of langgraph.json, as images of the hosted service set them. */
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

/** The names, for whoever describes them. */
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

/** The minutes alone are the older form of a thread's time to live. */
const valueIn = (name: string, key: string, text: string): JsonValue =>
  name === "LANGGRAPH_THREAD_TTL" && /^\s*[\d.]+\s*$/.test(text)
    ? { default_ttl: Number(text) }
    : objectIn(name, key, text);

/**
 * The keys of langgraph.json that an environment gives; an empty variable counts as not set. Throws StartError for what is
 * no JSON object; what stands in it is checked with the file.
 */
export const projectKeysIn = (environment: Readonly<Record<string, string | undefined>>): ProjectKeys => {
  const textOf = (name: string): string => ownField(environment, name) ?? "";
  const given = Object.entries(VARIABLES).filter(([name]) => textOf(name) !== "");
  const prefix = textOf(MOUNT_PREFIX);
  return Object.freeze({
    ...Object.fromEntries(given.map(([name, key]) => [key, valueIn(name, key, textOf(name))])),
    ...(prefix === "" ? {} : { "http.mount_prefix": prefix }),
  });
};
