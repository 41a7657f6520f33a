import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { parseEnv } from "node:util";
import type { z } from "zod";
import { storeExpiryOf, threadExpiryOf, type StoreExpiry, type ThreadExpiry } from "./expiry.ts";
import type { GraphDefaults } from "./assistant-defaults.ts";
import { authConfigOf, type AuthConfig } from "./auth.ts";
import { httpRulesOf, type HttpRules } from "./http.ts";
import { fileExists } from "../../platform/lib/file-exists.ts";
import { JsonFileError, readJsonFile } from "./json-file.ts";
import { fileSchema, keyWarning, reviewKeys, withKeys } from "./known-keys.ts";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { mcpConfigOf, type McpConfig } from "./mcp.ts";
import { usageConfigOf, type UsageConfig } from "./usage.ts";
import { webhookConfigOf, type WebhookConfig } from "./webhooks.ts";
import { uiConfigOf, type UiConfig } from "./ui.ts";
import { storeIndexOf, type StoreIndexConfig } from "./store-embedding.ts";

export interface GraphEntry {
  id: string;
  /** Absolute. */
  file: string;
  /** `default` is a name like any other. */
  exportName: string;
  description: string | undefined;
  defaults?: GraphDefaults | undefined;
}

export interface GraphConfig {
  /** Absolute path of langgraph.json. */
  path: string;
  entries: GraphEntry[];
  /** Variables of `env`. The caller sets them before it loads graphs. */
  environment: Record<string, string>;
  /** Absolute; the file may be missing. */
  environmentFile: string | undefined;
  /** `checkpointer.ttl`. */
  threadExpiry: ThreadExpiry;
  /** `store.ttl`. */
  storeExpiry: StoreExpiry;
  /** `store.index`; undefined: no semantic search. */
  storeIndex: StoreIndexConfig | undefined;
  http: HttpRules;
  /** `webhooks`, and `http.disable_webhooks`. */
  webhooks: WebhookConfig;
  /** `ui` and `ui_config`. */
  ui: UiConfig;
  mcp: McpConfig;
  usage: UsageConfig;
  auth: AuthConfig | undefined;
  /** The file has `encryption`. */
  namesEncryption: boolean;
  /** Names keys without effect. */
  warning: string | undefined;
  forImages: readonly string[];
}

/** The message is for the operator. */
export class GraphLoadError extends Error {
  override readonly name = "GraphLoadError";
}

/**
 * Paths in the file are relative to it. `given`: keys from the environment, which win; with `graphs` the file may be
 * missing.
 * @throws GraphLoadError
 */
export async function readGraphConfig(configPath: string, given: ProjectKeys = {}): Promise<GraphConfig> {
  const path = resolve(configPath);
  const folder = dirname(path);
  const json = withKeys(await readJson(path, { mayBeMissing: given["graphs"] !== undefined }), given);
  const review = reviewKeys(json);
  const parsed = fileSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const field = issue?.path.join(".") || "the file";
    const sentences = [`${field}: ${issue?.message ?? "unknown error"}`, ...review.unknown];
    const isGiven = Object.keys(given).some((key) => `${field}.`.startsWith(`${key}.`));
    const source = isGiven ? `${path} with the keys that the environment sets` : path;
    throw new GraphLoadError(`${source} is not valid: ${sentences.join("; ").replace(/[.?]$/, "")}.`);
  }
  if (review.misspeltAuth !== undefined) {
    throw new GraphLoadError(
      `${path}: ${review.misspeltAuth} The server refuses to start, because it might be open. Correct the key, or remove it.`,
    );
  }
  const entries = Object.entries(parsed.data.graphs).map(([id, value]): GraphEntry => {
    const graph = typeof value === "string" ? { path: value } : value;
    const { path: reference } = graph;
    const colon = reference.lastIndexOf(":");
    if (/\.py(:|$)/.test(reference)) {
      throw new GraphLoadError(
        `${path}: graph '${id}' is '${reference}', which is Python: this server runs graphs of LangGraph.js, written ` +
          "in TypeScript or JavaScript.",
      );
    }
    if (colon < 1 || colon === reference.length - 1) {
      throw new GraphLoadError(
        `${path}: graph '${id}' is '${reference}', which does not name an export: write './file.ts:graph'.`,
      );
    }
    return {
      id,
      file: resolve(folder, reference.slice(0, colon)),
      exportName: reference.slice(colon + 1),
      description: graph.description ?? undefined,
      defaults: { config: graph.config ?? {}, context: graph.context ?? {}, starters: graph.starters ?? [] },
    };
  });
  // The parser has dropped this key.
  if (Object.hasOwn((json as z.input<typeof fileSchema>).graphs, "__proto__"))
    throw new GraphLoadError(`${path}: no graph can be named '__proto__'. Choose another name.`);
  if (entries.length === 0) throw new GraphLoadError(`${path} names no graphs.`);
  const keys = keyWarning(review);
  const { env } = parsed.data;
  const environmentFile = typeof env === "string" ? resolve(folder, env) : undefined;
  const warnings = [...(keys === undefined ? [] : [keys]), ...(await missingEnvironment(environmentFile))];
  return {
    path,
    entries,
    environment: await readEnvironment(folder, parsed.data.env),
    environmentFile,
    threadExpiry: threadExpiryOf(parsed.data.checkpointer),
    storeExpiry: storeExpiryOf(parsed.data.store?.ttl),
    storeIndex: storeIndexOf(parsed.data.store?.index, folder),
    auth: authConfigOf(parsed.data.auth, folder),
    http: httpRulesOf(parsed.data.http, folder),
    webhooks: webhookConfigOf(parsed.data.webhooks, parsed.data.http?.disable_webhooks === true),
    namesEncryption: review.namesEncryption,
    ui: uiConfigOf(parsed.data, folder),
    mcp: mcpConfigOf(parsed.data.mcp),
    usage: usageConfigOf(parsed.data.usage),
    warning: warnings.length === 0 ? undefined : warnings.join("; "),
    forImages: review.forImages,
  };
}

async function readJson(path: string, { mayBeMissing }: { mayBeMissing: boolean }): Promise<unknown> {
  try {
    return await readJsonFile(path);
  } catch (error) {
    if (!(error instanceof JsonFileError)) throw error;
    if (mayBeMissing && error.kind === "missing") return {};
    const advice =
      error.kind === "missing"
        ? " It names the graphs of a project: start where it is, or name it with --config."
        : "";
    throw new GraphLoadError(`${error.message}${advice}`, { cause: error });
  }
}

/** A fresh checkout has no `.env`. Another missing file may be a typing error. */
const missingEnvironment = async (file: string | undefined): Promise<string[]> =>
  file === undefined || basename(file) === ".env" || (await fileExists(file))
    ? []
    : [`env names ${file}, which is not there`];

/** A missing env file counts as empty, because repositories do not hold it. */
async function readEnvironment(
  folder: string,
  env: string | Record<string, string | number | boolean> | undefined,
): Promise<Record<string, string>> {
  if (env === undefined) return {};
  if (typeof env === "object") {
    return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
  }
  const text = await readFile(resolve(folder, env), "utf8").catch((cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return "";
    throw new GraphLoadError(`${resolve(folder, env)} can't be read: ${messageOf(cause)}.`, { cause });
  });
  return { ...parseEnv(text) } as Record<string, string>;
}

export const messageOf = (thrown: unknown): string =>
  (thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)).replace(/\.$/, "");
