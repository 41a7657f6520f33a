import { assertMayListen, isExposed, type Config } from "../../platform/config/config.ts";
import { StartError, StateStorageError, sqlState } from "../../platform/domain/errors.ts";
import { readdir, readFile, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import { isUnusable, unusableReason } from "../../platform/database/passing-faults.ts";
import { assertSessions } from "../../platform/database/pooling.ts";
import { databaseName } from "../banner.ts";
import { randomUUID } from "node:crypto";
import type { Environment } from "../../platform/config/resolve.ts";
import { openObjectStore } from "../../platform/database/object-store.ts";
import { objectStoreIn } from "../own-database.ts";

interface Doors {
  hasStoredKeys: boolean;
  hasAuth: boolean;
}

const waysOf = ({ apiKeys }: Config, { hasStoredKeys, hasAuth }: Doors): string[] => [
  ...(apiKeys.length > 0 ? ["API_KEYS"] : []),
  ...(hasStoredKeys ? ["API keys in the database"] : []),
  ...(hasAuth ? ["auth of langgraph.json"] : []),
];

export const checkAccess = (config: Config, doors: Doors): Check => {
  const ways = waysOf(config, doors);
  const make = "Make one with 'threadloom keys create --name admin --scopes admin'.";
  try {
    assertMayListen(config, doors);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return fail("Access", `a start on ${config.host} is refused: there are no API keys`, make);
  }
  if (ways.length > 0) return ok("Access", ways.join(", "));
  if (config.unsafeNoAuth)
    return warn(
      "Access",
      "open, as --unsafe-no-auth says",
      "Make sure that the proxy in front checks access.",
    );
  return isExposed(config)
    ? fail("Access", "open", make)
    : ok("Access", "open on this machine; without API keys, the server refuses to listen beyond loopback");
};

const ANSWER_MS = 2_000;
const LISTENING = "0A";

const bind = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error) => resolve(sqlState(error) ?? error.message));
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });

const threadloomAt = async (port: number): Promise<string | undefined> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/info`, { signal: AbortSignal.timeout(ANSWER_MS) });
    const { threadloom_version: version } = (await response.json()) as { threadloom_version?: string };
    return version;
  } catch {
    return undefined;
  }
};

/** Undefined outside of Linux, and for other users' processes. */
const holderOf = async (port: number): Promise<string | undefined> => {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const sockets = tables
    .flatMap((table) => table.split("\n").map((line) => line.trim().split(/\s+/)))
    .filter((fields) => fields[1]?.endsWith(end) === true && fields[3] === LISTENING)
    .map((fields) => `socket:[${fields[9]}]`);
  if (sockets.length === 0) return undefined;
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const id of processes) {
    for (const descriptor of await readdir(`/proc/${id}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${id}/fd/${descriptor}`).catch(() => "");
      if (!sockets.includes(target)) continue;
      const name = (await readFile(`/proc/${id}/comm`, "utf8").catch(() => "")).trim();
      return `process ${id} (${name})`;
    }
  }
  return undefined;
};

export const checkPort = async (host: string, port: number): Promise<Check> => {
  const where = `${host}:${port}`;
  const code = port === 0 ? undefined : await bind(host, port);
  if (code === undefined) return ok("Port", port === 0 ? "any free one" : `${where} is free`);
  if (code === "EADDRINUSE") {
    const [version, holder] = await Promise.all([threadloomAt(port), holderOf(port)]);
    const by = holder === undefined ? "" : `, ${holder}`;
    return version === undefined
      ? fail(
          "Port",
          `${where} is taken by another program${by}`,
          `Choose another port, e.g. --port ${port + 1}.`,
        )
      : warn(
          "Port",
          `${where} is taken by a Threadloom ${version} that runs${by}`,
          `To start a second one, give it another port, e.g. --port ${port + 1}.`,
        );
  }
  if (code === "EACCES")
    return fail("Port", `listening on ${where} is not permitted`, "Choose a port above 1023 with --port.");
  return fail(
    "Port",
    `no server can listen on ${where} (${code})`,
    "Choose an address of this machine with --host.",
  );
};

const SESSIONS = "Sessions";

/** A pooler in transaction mode gives no session to a client. */
export const checkSessions = async (config: Config): Promise<Check[]> => {
  const { databaseUrl, databaseDirectUrl, databasePreparedStatements: preparedStatements } = config;
  if (databaseUrl === undefined) return [];
  const addresses = {
    connectionString: databaseUrl,
    directConnectionString: databaseDirectUrl,
    preparedStatements,
  };
  try {
    await assertSessions(addresses);
  } catch (error) {
    if (error instanceof StartError)
      return [
        fail(SESSIONS, error.message, "The server refuses to start. See docs/scaling.md about poolers."),
      ];
    if (!isUnusable(error) && sqlState(error) === undefined) throw error;
    const advice =
      "Check that the database runs, and that the address, user and password in DATABASE_URL are right.";
    return [fail(SESSIONS, `${databaseName(databaseUrl)}: ${unusableReason(error)}`, advice)];
  }
  const by = databaseDirectUrl === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
  return [ok(SESSIONS, `connections of ${by} are whole sessions`)];
};

const OBJECT_STORE = "Object store";

/** Stores, reads and removes an object, as servers do. Undefined without an object store. */
export const checkObjectStore = async (environment: Environment): Promise<Check | undefined> => {
  const setup = objectStoreIn(environment);
  if (setup === undefined) return undefined;
  const text = "threadloom doctor";
  const key = `doctor-${randomUUID()}`;
  try {
    const objects = await openObjectStore(setup);
    try {
      await objects.write(key, text);
      const read = await objects.read(key);
      await objects.remove(key);
      const missing = await objects.read(key).catch((error: unknown) => error);
      if (!(missing instanceof StateStorageError))
        return warn(
          OBJECT_STORE,
          `${setup.url} does not say that an object is missing, so a server would wait for it as in an outage`,
          "Servers also need the right s3:ListBucket on the bucket.",
        );
      if (read !== text)
        return fail(
          OBJECT_STORE,
          `${setup.url} returns other texts than it was given`,
          "Check whether a proxy changes the objects.",
        );
      return ok(OBJECT_STORE, `${setup.url} takes, returns and removes objects`);
    } finally {
      objects.close();
    }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error && !(error instanceof StartError);
    const reason = cause ? (error.cause as Error).message || (error.cause as Error).name : "";
    return fail(
      OBJECT_STORE,
      `${setup.url}: ${(error as Error).message}${reason === "" ? "" : ` ${reason}`}`,
      "Check OBJECT_STORE_URL and OBJECT_STORE_ENDPOINT. Servers need the rights s3:PutObject, s3:GetObject and s3:DeleteObject on the objects of this bucket.",
    );
  }
};

export interface Check {
  level: "ok" | "info" | "warn" | "fail";
  name: string;
  text: string;
  advice?: string | undefined;
}

export const ok = (name: string, text: string): Check => ({ level: "ok", name, text });
export const info = (name: string, text: string): Check => ({ level: "info", name, text });
export const warn = (name: string, text: string, advice: string): Check => ({
  level: "warn",
  name,
  text,
  advice,
});
export const fail = (name: string, text: string, advice: string): Check => ({
  level: "fail",
  name,
  text,
  advice,
});

const NAME_COLUMN = 16;
const LEVEL_COLUMN = 6;
const indented = (text: string): string =>
  text.trim().replaceAll("\n", `\n${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}`);

/** The level is a word, so it is readable without colours. */
export const checkText = ({ level, name, text, advice }: Check): string =>
  `${level.toUpperCase().padEnd(LEVEL_COLUMN)}${name.padEnd(NAME_COLUMN)}${indented(text)}\n` +
  (advice === undefined ? "" : `${" ".repeat(LEVEL_COLUMN + NAME_COLUMN)}-> ${indented(advice)}\n`);
