import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GraphLoadError, readGraphConfig, type GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { JsonFileError } from "../../graphs/project/json-file.ts";
import { canReadTypes } from "../../graphs/source/compiler.ts";
import { TYPESCRIPT } from "../../graphs/modules.ts";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { webhookHeaders, webhooksWarning } from "../../graphs/project/webhooks.ts";
import type { Environment } from "../../platform/config/resolve.ts";
import { fail, info, ok, tried, warn, type Check } from "./checks.ts";
import { loadElsewhere } from "./loading.ts";
import type { LoadingRequest } from "./loading-check.ts";

const CONFIG = "langgraph.json";

/** Returns undefined for an invalid project. */
export async function* checkProject(
  file: string,
  given: ProjectKeys,
): AsyncGenerator<Check, GraphConfig | undefined> {
  let project: GraphConfig;
  try {
    project = await readGraphConfig(file, given);
  } catch (error) {
    if (!(error instanceof GraphLoadError)) throw error;
    const kind = error.cause instanceof JsonFileError ? error.cause.kind : undefined;
    const advice =
      kind === "missing"
        ? "Write this file, make a project with 'threadloom new', or name another file with --config."
        : `${kind === undefined ? "Make it name your graphs" : "Correct it"}, or name another file with --config.`;
    yield fail(CONFIG, error.message, advice);
    return undefined;
  }
  const { path, warning, forImages, entries } = project;
  yield warning === undefined
    ? ok(CONFIG, `${path}, ${entries.length} graph${entries.length === 1 ? "" : "s"}`)
    : warn(CONFIG, warning, `Correct misspelt keys in ${path}, and remove keys without effect.`);
  if (forImages.length > 0)
    yield info(
      CONFIG,
      `${forImages.join(", ")}: only for images of the hosted service or of 'threadloom dockerfile'; a server does not read them`,
    );
  return project;
}

/** As in the peerDependencies of package.json. */
const SUPPORTED = [
  { name: "@langchain/langgraph", from: [0, 4], below: 2 },
  { name: "@langchain/core", from: [0, 3], below: 2 },
] as const;

/** Not by `require.resolve`: a package may not export its package.json. */
const installedVersion = async (name: string, folder: string): Promise<string | undefined> => {
  for (let above = folder; ; above = dirname(above)) {
    const text = await readFile(join(above, "node_modules", name, "package.json"), "utf8").catch(
      () => undefined,
    );
    if (text !== undefined) return (JSON.parse(text) as { version?: string }).version;
    if (dirname(above) === above) return undefined;
  }
};

export const checkVersions = (folder: string): Promise<Check[]> =>
  Promise.all(
    SUPPORTED.map(async ({ name, from: [fromMajor, fromMinor], below }) => {
      const range = `${fromMajor}.${fromMinor} or newer, below ${below}.0`;
      const title = name.replace("@langchain/", "");
      const version = await installedVersion(name, folder);
      if (version === undefined)
        return fail(title, `${name} is not installed for ${folder}`, `npm install ${name}`);
      const [major = 0, minor = 0] = version.split(".").map(Number);
      const isOld = major < fromMajor || (major === fromMajor && minor < fromMinor);
      return isOld || major >= below
        ? fail(title, `${name} ${version}; supported versions: ${range}`, `npm install ${name}@latest`)
        : ok(title, `${name} ${version}`);
    }),
  );

export const checkTypescript = async ({ entries, path }: GraphConfig): Promise<Check[]> => {
  if (!entries.some(({ file }) => TYPESCRIPT.test(file))) return [];
  const version = await installedVersion("typescript", dirname(path));
  if (version !== undefined && canReadTypes(version)) return [ok("typescript", `typescript ${version}`)];
  const what =
    version === undefined
      ? `typescript is not installed for ${dirname(path)}`
      : `typescript ${version} has no API to read types`;
  const effect = "the console shows fields that only TypeScript types describe as plain JSON";
  return [info("typescript", `${what}: ${effect} (npm install --save-dev typescript@5)`)];
};

const EVENTS_SHOWN = 10;
const REFUSED = "Correct it: the server refuses to start.";

/** Loads the graphs, `auth` and `http.app` as a server does. */
export async function* checkParts(
  { path, auth, http, webhooks }: GraphConfig,
  projectKeys: ProjectKeys,
  environment: Environment,
  timeoutMs: number,
): AsyncGenerator<Check> {
  const load = (part: LoadingRequest["part"]) =>
    loadElsewhere({ part, configPath: path, projectKeys }, environment, timeoutMs);
  const graphs = await load("graphs");
  yield "found" in graphs ? ok("Graphs", graphs.found.join(", ")) : fail("Graphs", graphs.failure, REFUSED);
  if (auth !== undefined) {
    const answer = await load("auth");
    if ("failure" in answer) yield fail("auth", answer.failure, REFUSED);
    else if (answer.found.length > 0) {
      const rest = answer.found.length - EVENTS_SHOWN;
      const events = answer.found.slice(0, EVENTS_SHOWN).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
      const text = `no handler covers these events, so every user may do them: ${events}`;
      yield warn("auth", text, "Write handlers for them, or one for '*'.");
    } else yield ok("auth", `${auth.file} loads and covers every event`);
    if (auth.letsStudioIn)
      yield warn(
        "auth",
        "auth.disable_studio_auth is false: callers that claim to be Studio are let in without a check",
        "Remove it, unless only you can reach this server.",
      );
  }
  if (http.app !== undefined) {
    const answer = await load("http.app");
    yield "found" in answer
      ? ok("http.app", `${http.app.file} loads`)
      : fail("http.app", answer.failure, REFUSED);
  }
  if (webhooks.disabled || Object.keys(webhooks.headers).length === 0) return;
  yield await tried("webhooks", REFUSED, async () => {
    webhookHeaders(webhooks, environment);
    const warning = webhooksWarning(webhooks);
    if (warning === undefined) return "the variables of their headers are set";
    return warn("webhooks", warning, "List the allowed domains in webhooks.url.allowed_domains.");
  });
}
