import { parseArgs } from "node:util";
import { list, type Option, type Translation } from "./option.ts";
import { OPTIONS, type Config } from "./options.ts";
import { StartError, UsageError } from "../domain/errors.ts";
import { projectKeysIn } from "./project-keys.ts";
import { nearestWord } from "../lib/nearest-word.ts";

export type { Config };

/**
 * Parses environment and command line into one typed, frozen Config. Pure: `main` passes in the surroundings.
 * options.ts declares the options.
 */

export interface Surroundings {
  terminal: boolean;
  /** Reads the file that API_KEYS_FILE names. */
  readText(path: string): string;
}

/** Not part of the Config. */
const HELP = "help";
const ENVIRONMENT = "environment";
const VERSION = "version";

export interface CommandLine {
  help: boolean;
  helpWithEnvironment: boolean;
  version: boolean;
  values: ReadonlyMap<string, string>;
}

const adviceFor = (name: string, names: readonly string[]): string => {
  const nearest = nearestWord(name, names);
  if (nearest !== undefined) return `Did you mean --${nearest}? See --help for all.`;
  const variable = name.replaceAll("-", "_").toUpperCase();
  const known = Object.values(OPTIONS).some(({ environment }) => environment.includes(variable));
  return known ? `Set ${variable} in the environment instead.` : "See --help for all.";
};

/** Throws UsageError for an unknown flag and names the nearest. */
export const readCommandLine = (argv: readonly string[]): CommandLine => {
  const rows = Object.values(OPTIONS).filter((option) => option.flag !== undefined);
  const switches = new Set([
    HELP,
    ENVIRONMENT,
    VERSION,
    ...rows.filter((row) => row.switch).map((row) => row.flag),
  ]);
  const names = [...rows.map((row) => row.flag!), HELP, ENVIRONMENT, VERSION];
  const shortNames = new Map([
    ...rows.map((row) => [row.flag, row.shortFlag] as const),
    [HELP, "h"],
    [VERSION, "v"],
  ]);
  const options = Object.fromEntries(
    names.map((name) => {
      const short = shortNames.get(name);
      const type = switches.has(name) ? ("boolean" as const) : ("string" as const);
      return [name, { type, ...(short !== undefined && { short }) }];
    }),
  );
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue;
    if (token.kind === "positional") {
      throw new UsageError(
        `Unexpected argument '${token.value}'. Options start with --; see --help. ` +
          "npm takes those for itself that don't follow a -- of their own: npm start -- --port 8124.",
      );
    }
    const { name, rawName, value } = token;
    if (!names.includes(name)) {
      throw new UsageError(`There is no option ${rawName}. ${adviceFor(name, names)}`);
    }
    if (switches.has(name)) values.set(name, value ?? "true");
    else if (value === undefined || value === "" || value.startsWith("--")) {
      throw new UsageError(`${rawName} needs a value, for example: ${rawName} ${exampleOf(name)}`);
    } else values.set(name, value);
  }
  const helpWithEnvironment = values.has(ENVIRONMENT);
  return {
    help: values.has(HELP) || helpWithEnvironment,
    helpWithEnvironment,
    version: values.has(VERSION),
    values,
  };
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Flag before environment before default. An empty variable counts as not set. */
const given = (
  { flag, environment: names, translations, default: usual }: Option<unknown>,
  values: ReadonlyMap<string, string>,
  environment: Environment,
): { value: string | undefined; text: string | undefined; source?: string; translation?: Translation } => {
  const value = values.get(flag ?? "");
  if (value !== undefined) return { value, text: value, source: `--${flag}` };
  for (const source of names) {
    const text = environment[source] ?? "";
    const translation = translations?.[source];
    const translated = translation === undefined ? text : translation.translate(text);
    if (text === "" || translated === undefined) continue;
    return { value: translated, text, source, ...(translation && { translation }) };
  }
  return { value: usual, text: usual };
};

/** Needed before the rest, since langgraph.json may name a file with more environment variables. */
export const graphConfigFileOf = (argv: readonly string[], environment: Environment): string => {
  return given(OPTIONS.graphConfigFile, readCommandLine(argv).values, environment).value ?? "";
};

const exampleOf = (name: string): string =>
  Object.values(OPTIONS).find((option) => option.flag === name)?.default ?? "value";

/** Judges the option, because refusals come before the server listens. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);

/** Shorter keys can be guessed; see `openssl rand -hex 32`. */
const KEY_LENGTH_AT_LEAST = 16;

/**
 * Refuses to start, because a project with its own encryption handlers would store everything unencrypted.
 * @param where the place that names the handlers, e.g. "encryption of langgraph.json"
 */
export const ownEncryption = (where: string): StartError =>
  new StartError(
    `Refusing to start: ${where} names handlers of your own that encrypt what is stored, which this server does not call. ` +
      "Take it out, and set LANGGRAPH_AES_KEY to have everything encrypted with a key of yours.",
  );

const assertRelations = (config: Config): void => {
  if (config.leaseSeconds <= 2 * config.heartbeatSeconds) {
    throw new StartError(
      `LEASE_SECONDS (${config.leaseSeconds}) must be more than twice HEARTBEAT_SECONDS ` +
        `(${config.heartbeatSeconds}): one late heartbeat must not cost a lease.`,
    );
  }
  if (config.blockedLoopSeconds !== 0 && config.blockedLoopSeconds < config.leaseSeconds) {
    throw new StartError(
      `BLOCKED_LOOP_SECONDS (${config.blockedLoopSeconds}) must be 0 or at least LEASE_SECONDS ` +
        `(${config.leaseSeconds}): a loop that is blocked for less than a lease keeps its runs anyway.`,
    );
  }
  if (config.headersTimeoutSeconds > config.requestTimeoutSeconds) {
    throw new StartError(
      `HEADERS_TIMEOUT_SECONDS (${config.headersTimeoutSeconds}) must be no more than REQUEST_TIMEOUT_SECONDS ` +
        `(${config.requestTimeoutSeconds}): the headers are a part of the request.`,
    );
  }
  if (config.encryptionKeys.length === 0) {
    const { encryptionFallbackKeys, encryptedMetadataKeys } = config;
    const [name] = [
      ...(encryptionFallbackKeys.length > 0 ? ["LANGGRAPH_AES_FALLBACK_KEYS"] : []),
      ...(encryptedMetadataKeys.length > 0 ? ["LANGGRAPH_AES_JSON_KEYS"] : []),
    ];
    if (name !== undefined)
      throw new StartError(`${name} needs a LANGGRAPH_AES_KEY beside it, which encrypts.`);
  }
  if (config.databaseDirectUrl !== undefined && config.databaseUrl === undefined) {
    throw new StartError(
      "DATABASE_DIRECT_URL needs a DATABASE_URL beside it: the way past a pooler to that database.",
    );
  }
  if (isLoopback(config.host)) return;
  if (config.apiKeys.some((key) => key.length < KEY_LENGTH_AT_LEAST)) {
    throw new StartError(
      `Refusing to listen on ${config.host} with an API key of less than ${KEY_LENGTH_AT_LEAST} characters, ` +
        "which can be guessed. Make one with: openssl rand -hex 32",
    );
  }
};

export const isExposed = ({ host, unsafeNoAuth }: Config): boolean => !isLoopback(host) && !unsafeNoAuth;

/** Call it when the database is open, since API keys may be stored there. Throws StartError. */
export const assertMayListen = (
  config: Config,
  { hasStoredKeys, hasAuth = false }: { hasStoredKeys: boolean; hasAuth?: boolean },
): void => {
  if (!isExposed(config) || config.apiKeys.length > 0 || hasStoredKeys || hasAuth) return;
  throw new StartError(
    `Refusing to listen on ${config.host} without API keys: whoever reaches this machine could run your graphs. ` +
      "Make one with 'npx threadloom keys create --name admin --scopes admin', set API_KEYS, or pass --unsafe-no-auth " +
      "if something in front of this server checks access.",
  );
};

/**
 * Longer than slow code takes, and short for runs that share the process with an endless loop. Costs one of several
 * processes.
 */
const BLOCKED_GRAPH_PROCESS_SECONDS = 15;
/** The server's own process ends with all its work, so slow code gets more time. */
const BLOCKED_SERVER_SECONDS = 60;

const USUAL: { readonly [Key in keyof Config]?: (read: Config, surroundings: Surroundings) => Config[Key] } =
  {
    logFormat: (_read, { terminal }) => (terminal ? "pretty" : "json"),
    // Grows with a longer lease, so that setting the lease alone is valid.
    blockedLoopSeconds: ({ graphProcesses, leaseSeconds }) =>
      graphProcesses === 0
        ? BLOCKED_SERVER_SECONDS
        : Math.min(Math.max(BLOCKED_GRAPH_PROCESS_SECONDS, leaseSeconds), BLOCKED_SERVER_SECONDS),
  };

/** Throws StartError with one sentence that names the flag or the variable. */
export const parseConfig = (
  argv: readonly string[],
  environment: Environment,
  surroundings: Surroundings,
): Config => {
  const { values } = readCommandLine(argv);
  const entries = Object.entries(OPTIONS).flatMap(([key, option]: [string, Option<unknown>]) => {
    const { value, text, source = key, translation } = given(option, values, environment);
    if (value === undefined && Object.hasOwn(USUAL, key)) return [];
    const parsed = option.schema.safeParse(value);
    if (!parsed.success) {
      const actual = option.secret ? "" : `, not '${text}'`;
      const Kind = source.startsWith("--") ? UsageError : StartError;
      throw new Kind(`${source} must be ${translation?.expected ?? option.expected}${actual}.`);
    }
    return [[key, Array.isArray(parsed.data) ? Object.freeze(parsed.data) : parsed.data]];
  });
  const asGiven = Object.fromEntries(entries) as Config;
  const usual = Object.entries(USUAL).map(([key, usualOf]) => [key, usualOf(asGiven, surroundings)]);
  const projectKeys = projectKeysIn(environment);
  const read = { ...Object.fromEntries(usual), ...asGiven, projectKeys } as Config;
  const keyFile = environment["API_KEYS_FILE"] ?? "";
  const config =
    keyFile === ""
      ? read
      : { ...read, apiKeys: Object.freeze([...read.apiKeys, ...readKeys(keyFile, surroundings)]) };
  assertRelations(config);
  return Object.freeze(config);
};

const readKeys = (path: string, { readText }: Surroundings): string[] => {
  let keys: string[];
  try {
    keys = list(readText(path));
  } catch (error) {
    throw new StartError(`API_KEYS_FILE can't be read: ${(error as Error).message}.`, { cause: error });
  }
  if (keys.length === 0) throw new StartError(`API_KEYS_FILE (${path}) holds no key; write one per line.`);
  return keys;
};
