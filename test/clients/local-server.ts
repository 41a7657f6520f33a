import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "../helpers/free-port.ts";

/** The version of the documented differences. */
export const LOCAL_VERSION = "1.5.1";

const PACKAGE = "@langchain/langgraph-api";
const GRAPH = fileURLToPath(new URL("../fixtures/tokens.ts", import.meta.url));
/** Without its command line tool, which would watch files and open a browser. */
const START = `
import { startServer } from "${PACKAGE}/server";
await startServer(JSON.parse(process.argv[2]));
console.log("it listens");
`;

export interface LocalServer {
  url: string;
  close(): Promise<void>;
}

/** Why the local JavaScript server can't be tested here; undefined if it can. CONTRIBUTING.md says how to install it. */
export const whyNoLocalServer = async (): Promise<string | undefined> => {
  const folder = process.env.LOCAL_SERVER;
  if (folder === undefined) return "LOCAL_SERVER names no folder with the local server";
  try {
    const manifest = await readFile(join(folder, "node_modules", PACKAGE, "package.json"), "utf8");
    const { version } = JSON.parse(manifest) as { version: string };
    return version === LOCAL_VERSION ? undefined : `the local server is ${version}`;
  } catch {
    return `there is no ${PACKAGE} in the folder that LOCAL_SERVER names`;
  }
};

/** Starts the local JavaScript server, with the graph `tokens` of the fixtures, in a process of its own. */
export const startLocalServer = async (): Promise<LocalServer> => {
  const folder = resolve(process.env.LOCAL_SERVER ?? "");
  const [program, graph] = [join(folder, "start.mjs"), join(folder, "tokens.ts")];
  await writeFile(program, START);
  await copyFile(GRAPH, graph);
  const port = await freePort();
  const graphs = { tokens: "./tokens.ts:graph" };
  const options = { port, host: "127.0.0.1", nWorkers: 2, cwd: folder, graphs };
  const child = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify(options)], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes("it listens")) return { url: `http://127.0.0.1:${port}`, close };
  throw new Error("The local server ended before it listened.");
};
