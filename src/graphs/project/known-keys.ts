import { z } from "zod";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { storableConfig, storableObject, storableText } from "../../platform/domain/json-schemas.ts";
import { ownField } from "../../platform/lib/names.ts";
import { isJsonObject, type JsonObject, type JsonValue, isObject } from "../../platform/lib/json.ts";
import { distance, nearestWord } from "../../platform/lib/nearest-word.ts";
import { authSchema } from "./auth.ts";
import { checkpointerSchema, storeTtlSchema } from "./expiry.ts";
import { httpSchema } from "./http.ts";
import { mcpSchema } from "./mcp.ts";
import { storeIndexSchema } from "./store-embedding.ts";
import { uiConfigSchema, uiSchema } from "./ui.ts";
import { usageSchema } from "./usage.ts";
import { webhooksSchema } from "./webhooks.ts";

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

interface KeyReview {
  /** Keys that only the hosted server honours: path -> reason. */
  withoutEffect: ReadonlyMap<string, string>;
  /** Keys for building an image, which servers ignore. */
  forImages: readonly string[];
  /** Sentences. */
  unknown: readonly string[];
  /** A key that is nearly `auth`: the start is refused. */
  misspeltAuth: string | undefined;
  namesEncryption: boolean;
}

const IMAGE = Symbol("image");
/** `true`: honoured, or no warning needed. A text: the reason why the key has no effect. An object: the keys below. */
type Meaning = true | typeof IMAGE | string | Keys;
export type Keys = { readonly [key: string]: Meaning };

const graphPath = z.string().min(1);
/** As many as the console shows, in characters that fit a button. */
const starters = z.array(storableText.trim().min(1).max(500)).max(6);
const describedGraph = z.object({
  path: graphPath,
  description: z.string().nullish(),
  config: storableConfig.nullish(),
  context: storableObject.nullish(),
  starters: starters.nullish(),
});
export const fileSchema = z.object({
  graphs: z.record(
    z.string().min(1),
    z.union([graphPath, describedGraph], {
      error:
        'must be "file:export" or {"path": "file:export", "description": "…", "config": {…}, "context": {…}, "starters": ["…"]}',
    }),
    { error: 'must be an object like {"agent": "./graphs/agent.ts:graph"}' },
  ),
  env: z
    .union([z.string(), z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))], {
      error: 'must be the path of a file like ".env", or an object of variables',
    })
    .optional(),
  checkpointer: checkpointerSchema,
  http: httpSchema,
  webhooks: webhooksSchema,
  auth: authSchema,
  ui: uiSchema,
  ui_config: uiConfigSchema,
  mcp: mcpSchema,
  usage: usageSchema,
  store: z.object({ ttl: storeTtlSchema, index: storeIndexSchema }).nullish(),
});

const meaningOf = (schema: unknown): Meaning => {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return meaningOf(schema.unwrap());
  return schema instanceof z.ZodObject ? keysOf(schema) : true;
};
const keysOf = ({ shape }: z.ZodObject): Keys =>
  Object.fromEntries(Object.entries(shape).map(([key, schema]) => [key, meaningOf(schema)]));

export const GRAPH_KEYS: Keys = keysOf(describedGraph);

const FILE_KEYS: Keys = keysOf(fileSchema);
const BUILD_KEYS = [
  ...["dependencies", "node_version", "python_version", "base_image", "image_distro", "dockerfile_lines"],
  ...["docker_compose_file", "api_version", "pip_config_file", "pip_installer", "keep_pkg_tools", "source"],
];
const OWN_CHECKPOINTS = "this server keeps the checkpoints";

export const LANGGRAPH_JSON_KEYS: Keys = {
  ...FILE_KEYS,
  $schema: true,
  // Refuses the start (platform/config/config.ts).
  encryption: { path: true },
  store: { ...(FILE_KEYS["store"] as Keys), path: "this server keeps the store" },
  checkpointer: {
    ...(FILE_KEYS["checkpointer"] as Keys),
    ...{ serde: "for Python", backend: OWN_CHECKPOINTS, path: OWN_CHECKPOINTS },
  },
  ...Object.fromEntries(BUILD_KEYS.map((key) => [key, IMAGE])),
};

export const reviewKeys = (file: unknown): KeyReview => {
  const withoutEffect = new Map<string, string>();
  const unknown: string[] = [];
  const forImages: string[] = [];
  const check = (value: unknown, keys: Keys, path: string): void => {
    if (!isObject(value)) return;
    for (const [key, item] of Object.entries(value)) {
      if (item === null || item === false) continue; // the same as omitted
      const meaning = Object.hasOwn(keys, key) ? keys[key] : undefined;
      if (meaning === undefined) {
        const nearest = nearestWord(key, Object.keys(keys));
        const hint = nearest === undefined ? "" : `; did you mean '${path}${nearest}'?`;
        unknown.push(`'${path}${key}' is unknown${hint}`);
      } else if (meaning === IMAGE) forImages.push(key);
      else if (typeof meaning === "string") withoutEffect.set(`${path}${key}`, meaning);
      else if (meaning !== true) check(item, meaning, `${path}${key}.`);
    }
  };
  check(file, LANGGRAPH_JSON_KEYS, "");
  const { graphs, encryption } = isObject(file) ? file : {};
  if (isObject(graphs))
    for (const [id, graph] of Object.entries(graphs)) check(graph, GRAPH_KEYS, `graphs.${id}.`);
  const namesEncryption = isObject(encryption) ? (encryption.path ?? false) !== false : !!encryption;
  return { withoutEffect, forImages, unknown, misspeltAuth: misspeltAuthIn(file), namesEncryption };
};

/** A value such as `auth.path`: a file that a server loads. */
const MODULE = /\.([cm]?[jt]sx?|py)(:|$)/;
const namesModule = (value: unknown): boolean =>
  typeof value === "string"
    ? MODULE.test(value)
    : isObject(value) && Object.values(value).some((item) => typeof item === "string" && MODULE.test(item));

const AUTH_EDITS_AT_MOST = 2;
/** Longer keys are another word, unless they start with `auth`. */
const AUTH_LETTERS_AT_MOST = 6;

const isNearAuth = (key: string): boolean =>
  /^auth/i.test(key) ||
  (key.length <= AUTH_LETTERS_AT_MOST && distance(key.toLowerCase(), "auth") <= AUTH_EDITS_AT_MOST);

/**
 * A typing error must not open a server: a key near `auth` names a module, or `auth` names a module under another key
 * than `path`.
 */
const misspeltAuthIn = (file: unknown): string | undefined => {
  if (!isObject(file)) return undefined;
  const auth = isObject(file.auth) ? file.auth : {};
  if (typeof auth.path === "string") return undefined;
  const [inside] = Object.entries(auth).find(([, value]) => namesModule(value)) ?? [];
  if (inside !== undefined) return `'auth.${inside}' is unknown; did you mean 'auth.path'?`;
  const [beside] =
    Object.entries(file).find(
      ([key, value]) => !Object.hasOwn(LANGGRAPH_JSON_KEYS, key) && isNearAuth(key) && namesModule(value),
    ) ?? [];
  return beside === undefined ? undefined : `'${beside}' is unknown; did you mean 'auth'?`;
};

const KEYS_AT_MOST = 30;

export const keyWarning = ({ withoutEffect, unknown }: KeyReview): string | undefined => {
  const idle = [...withoutEffect].map(([path, reason]) => `'${path}' has no effect here (${reason})`);
  const sentences = [...idle.slice(0, KEYS_AT_MOST), ...unknown.slice(0, KEYS_AT_MOST)];
  return sentences.length === 0 ? undefined : sentences.join("; ");
};
