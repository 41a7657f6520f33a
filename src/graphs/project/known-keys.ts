import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { ownField } from "../../platform/lib/names.ts";
import { isJsonObject, type JsonObject, type JsonValue, isObject } from "../../platform/lib/json.ts";
import { distance, nearestWord } from "../../platform/lib/nearest-word.ts";

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

const HEADERS: Keys = { includes: true, excludes: true, include: true, exclude: true };

const HTTP: Keys = {
  app: true,
  cors: {
    allow_origins: true,
    allow_methods: true,
    allow_headers: true,
    allow_credentials: true,
    allow_origin_regex: true,
    expose_headers: true,
    max_age: true,
  },
  disable_assistants: true,
  disable_threads: true,
  disable_runs: true,
  disable_store: true,
  disable_meta: true,
  disable_mcp: true,
  disable_a2a: true,
  disable_agui: true,
  disable_ui: true,
  disable_webhooks: true,
  configurable_headers: HEADERS,
  logging_headers: HEADERS,
  middleware_order: true,
  enable_custom_route_auth: true,
  mount_prefix: true,
};

export const LANGGRAPH_JSON_KEYS: Keys = {
  $schema: true,
  graphs: true,
  env: true,
  store: {
    index: { dims: true, embed: true, fields: true },
    ttl: { default_ttl: true, refresh_on_read: true, sweep_interval_minutes: true },
    path: "this server keeps the store",
  },
  checkpointer: {
    ttl: { strategy: true, default_ttl: true, sweep_interval_minutes: true, sweep_limit: true },
    serde: "for Python",
    backend: "this server keeps the checkpoints",
    path: "this server keeps the checkpoints",
  },
  auth: {
    path: true,
    disable_studio_auth: true,
    openapi: { securitySchemes: true, security: true },
    cache: { cache_keys: true, ttl_seconds: true, max_size: true },
  },
  // Refuses the start (platform/config/config.ts).
  encryption: { path: true },
  http: HTTP,
  webhooks: {
    env_prefix: true,
    headers: true,
    allowed_fields: true,
    url: {
      require_https: true,
      allowed_domains: true,
      allowed_ports: true,
      max_url_length: true,
      disable_loopback: true,
      disable_private_ips: true,
    },
  },
  ui: true,
  ui_config: { shared: true },
  mcp: { tools: true, authorization_servers: true },
  usage: { currency: true, prices: true, budgets: true },
  dependencies: IMAGE,
  node_version: IMAGE,
  python_version: IMAGE,
  base_image: IMAGE,
  image_distro: IMAGE,
  dockerfile_lines: IMAGE,
  docker_compose_file: IMAGE,
  api_version: IMAGE,
  pip_config_file: IMAGE,
  pip_installer: IMAGE,
  keep_pkg_tools: IMAGE,
  source: IMAGE,
};

export const GRAPH_KEYS: Keys = {
  path: true,
  description: true,
  config: true,
  context: true,
  starters: true,
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
  const reasons = new Map<string, string[]>();
  for (const [path, reason] of withoutEffect) reasons.set(reason, [...(reasons.get(reason) ?? []), path]);
  const parts = [...reasons].map(([reason, paths]) => {
    const named = paths.slice(0, KEYS_AT_MOST).map((path) => `'${path}'`);
    return `${named.join(", ")} (${reason})`;
  });
  const sentences = [
    ...(parts.length === 0
      ? []
      : [`${parts.join(", ")} ${withoutEffect.size === 1 ? "has" : "have"} no effect here`]),
    ...unknown.slice(0, KEYS_AT_MOST),
  ];
  return sentences.length === 0 ? undefined : sentences.join("; ");
};
