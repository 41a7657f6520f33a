import { randomUUID } from "node:crypto";
import { GraphLoadError } from "../../graphs/project/langgraph-json.ts";
import { assertMayListen, type Config } from "../../platform/config/config.ts";
import type { Environment } from "../../platform/config/resolve.ts";
import { openObjectStore } from "../../platform/database/object-store.ts";
import { isUnusable } from "../../platform/database/passing-faults.ts";
import { assertSessions } from "../../platform/database/pooling.ts";
import { ObjectStoreError, StartError, StateStorageError, sqlState } from "../../platform/domain/errors.ts";
import { databaseName } from "../banner.ts";
import { objectStoreIn } from "../own-database.ts";
import { assertPortIsFree } from "../start/starting.ts";

export interface Check {
  level: "ok" | "info" | "warn" | "fail";
  name: string;
  text: string;
  advice?: string | undefined;
}

export const ok = (name: string, text: string): Check => ({ level: "ok", name, text });
export const info = (name: string, text: string): Check => ({ level: "info", name, text });
export const warn = (name: string, text: string, advice: string): Check => ({
  ...ok(name, text),
  level: "warn",
  advice,
});
export const fail = (name: string, text: string, advice: string): Check => ({
  ...warn(name, text, advice),
  level: "fail",
});

const isExpected = (error: unknown): error is Error =>
  [StartError, GraphLoadError, ObjectStoreError, StateStorageError].some((kind) => error instanceof kind) ||
  isUnusable(error) ||
  sqlState(error) !== undefined;

/** Fails with the sentence of an error, as a start does. `work` returns the text of an OK, or another check. */
export const tried = async (
  name: string,
  advice: string,
  work: () => Promise<string | Check>,
): Promise<Check> => {
  try {
    const found = await work();
    return typeof found === "string" ? ok(name, found) : found;
  } catch (error) {
    if (!isExpected(error)) throw error;
    const { message, cause } = error;
    const reason = error instanceof ObjectStoreError && cause instanceof Error ? ` ${cause.message}` : "";
    return fail(name, `${message || (sqlState(error) ?? "no answer")}${reason}`, advice);
  }
};

const NAME_COLUMN = 16;
const LEVEL_COLUMN = 6;
const indented = (text: string): string =>
  text.trim().replaceAll("\n", `\n${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}`);

/** The level is a word, so it is readable without colours. */
export const checkText = ({ level, name, text, advice }: Check): string =>
  `${level.toUpperCase().padEnd(LEVEL_COLUMN)}${name.padEnd(NAME_COLUMN)}${indented(text)}\n` +
  (advice === undefined ? "" : `${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}-> ${indented(advice)}\n`);

interface Doors {
  hasStoredKeys: boolean;
  hasAuth: boolean;
}

export const checkAccess = (config: Config, doors: Doors): Promise<Check> =>
  tried("Access", "Make a key with 'threadloom keys create --name admin --scopes admin'.", async () => {
    assertMayListen(config, doors);
    const ways = [
      ...(config.apiKeys.length > 0 ? ["API_KEYS"] : []),
      ...(doors.hasStoredKeys ? ["API keys in the database"] : []),
      ...(doors.hasAuth ? ["auth of langgraph.json"] : []),
    ];
    if (ways.length > 0) return ways.join(", ");
    return config.unsafeNoAuth
      ? warn("Access", "open, as --unsafe-no-auth says", "Make sure that the proxy in front checks access.")
      : "open on this machine; without API keys, the server refuses to listen beyond loopback";
  });

const ANSWER_MS = 2_000;

const threadloomAt = async (port: number): Promise<string | undefined> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/info`, { signal: AbortSignal.timeout(ANSWER_MS) });
    return ((await response.json()) as { threadloom_version?: string }).threadloom_version;
  } catch {
    return undefined;
  }
};

export const checkPort = async (config: Config): Promise<Check> => {
  const where = `${config.host}:${config.port}`;
  const another = `To start a second one, give it another port, e.g. --port ${config.port + 1}.`;
  const version = config.port === 0 ? undefined : await threadloomAt(config.port);
  if (version !== undefined)
    return warn("Port", `${where} is taken by a Threadloom ${version} that runs`, another);
  return await tried("Port", "Choose another with --port or --host.", async () => {
    await assertPortIsFree(config);
    return config.port === 0 ? "any free one" : `${where} is free`;
  });
};

export const DATABASE_ADVICE =
  "Check that the database runs, and that the address, user and password in DATABASE_URL are right.";

/** A pooler in transaction mode gives no session to a client. */
export const checkSessions = (url: string, { databaseDirectUrl }: Config): Promise<Check> =>
  tried("Sessions", "The server refuses to start. See docs/scaling.md about poolers.", async () => {
    await assertSessions({ connectionString: url, directConnectionString: databaseDirectUrl });
    const by = databaseDirectUrl === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
    return `connections of ${by} to ${databaseName(databaseDirectUrl ?? url)} are whole sessions`;
  });

const OBJECT_ADVICE =
  "Check OBJECT_STORE_URL and OBJECT_STORE_ENDPOINT. Servers need the rights s3:PutObject, s3:GetObject and s3:DeleteObject on " +
  "the objects of this bucket, and s3:ListBucket on the bucket.";

/** Stores, reads and removes an object, as servers do. Undefined without an object store. */
export const checkObjectStore = async (environment: Environment): Promise<Check | undefined> => {
  const setup = objectStoreIn(environment);
  if (setup === undefined) return undefined;
  const key = `doctor-${randomUUID()}`;
  return await tried("Object store", OBJECT_ADVICE, async () => {
    const objects = await openObjectStore(setup);
    try {
      await objects.write(key, key);
      if ((await objects.read(key)) !== key)
        throw new StartError(`${setup.url} returns other texts than it was given.`);
      await objects.remove(key);
      const missing = await objects.read(key).catch((error: unknown) => error);
      if (!(missing instanceof StateStorageError))
        throw new StartError(`${setup.url} does not say that an object is missing.`);
      return `${setup.url} takes, returns and removes objects`;
    } finally {
      objects.close();
    }
  });
};
