import { OPTIONS, type Config, type OptionName } from "./options.ts";
import { CONSTANTS, derivedFrom } from "./run-options.ts";
import { StartError } from "../domain/errors.ts";
import { projectKeysIn } from "./project-keys.ts";
import { resolveOptions, type Environment, type FlagNames, type Flags, type Resolved } from "./resolve.ts";

export type { Config };

/** Checks the option, because refusals come before the server listens. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);

/** Characters. Shorter keys can be guessed. */
const KEY_LENGTH_AT_LEAST = 16;

/**
 * A project with its own encryption handlers would store everything unencrypted.
 * @param where the place that names the handlers, e.g. "encryption of langgraph.json"
 */
export const ownEncryption = (where: string): StartError =>
  new StartError(
    `Refusing to start: ${where} names your own encryption handlers, which this server does not call. ` +
      "Take it out, and set LANGGRAPH_AES_KEY to have everything encrypted with a key of yours.",
  );

const assertRelations = (config: Config): void => {
  if (config.blockedLoopSeconds !== 0 && config.blockedLoopSeconds < config.leaseSeconds) {
    throw new StartError(
      `BLOCKED_LOOP_SECONDS (${config.blockedLoopSeconds}) must be 0 or at least LEASE_SECONDS ` +
        `(${config.leaseSeconds}): a loop that is blocked for less than a lease keeps its runs anyway.`,
    );
  }
  if (config.encryptionKeys.length === 0 && config.encryptedMetadataKeys.length > 0)
    throw new StartError("LANGGRAPH_AES_JSON_KEYS needs a LANGGRAPH_AES_KEY beside it, which encrypts.");
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

/** Call this after opening the database, which may store API keys. Throws StartError. */
export const assertMayListen = (
  config: Config,
  { hasStoredKeys, hasAuth = false }: { hasStoredKeys: boolean; hasAuth?: boolean },
): void => {
  if (!isExposed(config) || config.apiKeys.length > 0 || hasStoredKeys || hasAuth) return;
  throw new StartError(
    `Refusing to listen on ${config.host} without API keys: anyone who reaches this machine could run your graphs. ` +
      "Make one with 'npx threadloom keys create --name admin --scopes admin', set API_KEYS, or pass --unsafe-no-auth " +
      "if something in front of this server checks access.",
  );
};

/** Slow code needs less. Other runs of the process wait this long. */
const BLOCKED_GRAPH_PROCESS_SECONDS = 15;
/** The end of the server's own process stops all its work, so slow code gets more time. */
const BLOCKED_SERVER_SECONDS = 60;

/** Any lease is valid without BLOCKED_LOOP_SECONDS. */
const usualBlockedLoopSeconds = ({ graphProcesses, leaseSeconds }: Resolved): number =>
  Math.max(graphProcesses === 0 ? BLOCKED_SERVER_SECONDS : BLOCKED_GRAPH_PROCESS_SECONDS, leaseSeconds);

/**
 * Returns a frozen object.
 * `terminal`: whether the log goes to a terminal.
 * @throws StartError with one sentence that names the flag or the variable
 */
export const parseConfig = (
  flags: Flags,
  environment: Environment,
  { terminal = false, flagNames }: { terminal?: boolean; flagNames?: FlagNames } = {},
): Config => {
  const given = resolveOptions(Object.keys(OPTIONS) as OptionName[], flags, environment, flagNames);
  const config: Config = {
    ...given,
    ...CONSTANTS,
    ...derivedFrom(given),
    projectKeys: projectKeysIn(environment),
    logFormat: given.logFormat ?? (terminal ? "pretty" : "json"),
    blockedLoopSeconds: given.blockedLoopSeconds ?? usualBlockedLoopSeconds(given),
  };
  assertRelations(config);
  return Object.freeze(config);
};
