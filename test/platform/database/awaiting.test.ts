import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { awaitDatabase } from "../../../src/platform/database/awaiting.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { spawnServer } from "../../helpers/server-process.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

/** The port of a database that refuses connections until the test opens it. */
const aDatabaseToCome = async () => {
  const { connectionString, drop } = await freshDatabase();
  const target = new URL(connectionString);
  let fileExists = false;
  const open = new Set<Socket>();
  const port = createServer((client) => {
    if (!fileExists) return void client.destroy();
    const database = connect(Number(target.port), target.hostname);
    for (const socket of [client, database]) open.add(socket.on("error", () => socket.destroy()));
    client.pipe(database).pipe(client);
  }).listen(0, "127.0.0.1");
  await once(port, "listening");
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    port.close();
    await drop();
  });
  const url = new URL(connectionString);
  url.port = String((port.address() as AddressInfo).port);
  return { connectionString: url.href, arrives: () => void (fileExists = true) };
};

const awaited = (connectionString: string, options: { seconds?: number; signal?: AbortSignal } = {}) => {
  const { logger, lines } = listeningLogger();
  const { seconds = 3_600, signal = new AbortController().signal } = options;
  return {
    lines,
    outcome: awaitDatabase({ connectionString, name: "the one", seconds, signal, logger }),
  };
};

test("the server waits for a database that is not there yet, and logs that", async () => {
  const { connectionString, arrives } = await aDatabaseToCome();
  const { lines, outcome } = awaited(connectionString);
  await eventually("it is said", () => lines.join("").includes("the database at the one is not there yet"));
  arrives();
  await outcome;
  expect(lines.join("")).toContain("the database at the one is there");
});

test("permanent errors are thrown at once, and all errors without waiting", async () => {
  const { connectionString, arrives } = await aDatabaseToCome();
  await expect(awaited(connectionString, { seconds: 0 }).outcome).rejects.toThrow();
  arrives();
  const other = new URL(connectionString);
  other.pathname = "/no_such_database";
  const { lines, outcome } = awaited(other.href);
  await expect(outcome).rejects.toMatchObject({ code: "3D000" });
  expect(lines).toEqual([]);
});

test("waiting ends when its caller is stopped", async () => {
  const { connectionString } = await aDatabaseToCome();
  const ending = new AbortController();
  const { lines, outcome } = awaited(connectionString, { signal: ending.signal });
  const refused = expect(outcome).rejects.toThrow();
  await eventually("it is waited for", () => lines.length > 0);
  ending.abort();
  await refused;
});

test("a server starts before its database, logs that --data has none, and Ctrl-C ends the waiting", async () => {
  const { connectionString, arrives } = await aDatabaseToCome();
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const graph = fileURLToPath(new URL("../../fixtures/process.ts", import.meta.url));
  const config = join(folder.path, "langgraph.json");
  await writeFile(config, JSON.stringify({ graphs: { process: `${graph}:graph` } }));
  const argv = ["--config", config, "--port", "0", "--data", "/nowhere"];
  const [server, ended] = [1, 2].map(() =>
    spawnServer(argv, { DATABASE_URL: connectionString, DATABASE_WAIT_SECONDS: "3600" }),
  );
  onTestFinished(() => Promise.all([server, ended].map((one) => one?.kill())).then(() => undefined));
  await eventually("both wait", () =>
    [server, ended].every((one) => one?.output().includes("is not there yet; waiting for it")),
  );
  expect(server?.output()).not.toMatch(/postgres(?:ql)?:\/\//);
  ended?.child.kill("SIGINT");
  expect(await ended?.exit()).toBe(0);
  arrives();
  expect((await fetch(`${await server?.address()}/ok`)).status).toBe(200);
  expect(server?.output()).toContain("The database is not in --data");
});
