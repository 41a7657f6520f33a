import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { processCpuMs, processMemory } from "./cpu.ts";
import { createHttpClient } from "./http-client.ts";
import { spawnProcess, type RemoteServer } from "./server-process.ts";
import { freePort } from "../helpers/free-port.ts";

/**
 * The JS dev server of LangGraph (`@langchain/langgraph-api`, in memory), with the same requests. It is installed in a separate folder: in
 * this project's lock file its dependencies would break `npm ci`.
 */

const PEER_VERSION = "1.5.1";
const FOLDER = join(tmpdir(), `threadloom-bench-peer-${PEER_VERSION}`);
/** The project's own dependencies that the peer and the graphs need, in the same versions. */
const SHARED = [
  "@langchain/core",
  "@langchain/langgraph",
  "@langchain/langgraph-checkpoint",
  "@langchain/langgraph-sdk",
  "zod",
  "tsx",
  "typescript",
];
const INSTALL_MS = 300_000;
/** The default number of parallel runs of this server. */
const SLOTS = 10;

/** Starts the peer without its command line tool, which would watch files and open a browser. */
const START = `
import { startServer } from "@langchain/langgraph-api/server";
const options = JSON.parse(process.argv[2]);
await startServer(options);
console.log("the peer listens");
`;

const run = promisify(execFile);

const install = async (): Promise<void> => {
  const manifest = JSON.parse(
    await readFile(join(import.meta.dirname, "../../package.json"), "utf8"),
  ) as Record<"dependencies" | "devDependencies", Record<string, string>>;
  const versions = { ...manifest.devDependencies, ...manifest.dependencies };
  await mkdir(FOLDER, { recursive: true });
  await writeFile(
    join(FOLDER, "package.json"),
    JSON.stringify({
      private: true,
      type: "module",
      dependencies: {
        "@langchain/langgraph-api": PEER_VERSION,
        ...Object.fromEntries(SHARED.map((name) => [name, versions[name] ?? "*"])),
      },
    }),
  );
  await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: FOLDER, timeout: INSTALL_MS });
  await writeFile(join(FOLDER, "start.mjs"), START);
  // Copies the graphs, too, so that they find the peer's copy of LangGraph.
  await rm(join(FOLDER, "test"), { recursive: true, force: true });
  await cp(join(import.meta.dirname, "../fixtures"), join(FOLDER, "test/fixtures"), { recursive: true });
  await cp(join(import.meta.dirname, "graphs"), join(FOLDER, "test/bench/graphs"), { recursive: true });
};

/** Undefined, with a message, if it can't be installed or started here. */
export const startPeer = async (
  progress: (text: string) => void,
): Promise<{ remote: RemoteServer; close(): Promise<void> } | undefined> => {
  try {
    progress(`peer: installing @langchain/langgraph-api ${PEER_VERSION} in ${FOLDER}`);
    await install();
    await rm(join(FOLDER, ".langgraph_api"), { recursive: true, force: true }); // data from an earlier run
    const port = await freePort();
    const { graphs } = JSON.parse(
      await readFile(join(import.meta.dirname, "graphs/langgraph.json"), "utf8"),
    ) as { graphs: Record<string, string> };
    const options = {
      port,
      host: "127.0.0.1",
      nWorkers: SLOTS,
      cwd: join(FOLDER, "test/bench/graphs"),
      graphs,
    };
    const child = spawnProcess(
      [process.execPath, "--import", "tsx", join(FOLDER, "start.mjs"), JSON.stringify(options)],
      { cwd: FOLDER, environment: { LOG_LEVEL: "error", LANGCHAIN_CALLBACKS_BACKGROUND: "false" } },
    );
    const http = createHttpClient(`http://127.0.0.1:${port}`);
    const close = async (): Promise<void> => {
      http.close();
      await child.stop();
    };
    try {
      await child.said(/the peer listens/);
      await http.post("/assistants/search", {});
    } catch (error) {
      await close();
      throw error;
    }
    return {
      remote: {
        name: "peer",
        http,
        cpu: async () => ({ server: await processCpuMs(child.pid), database: 0 }),
        memory: () => processMemory(child.pid),
      },
      close,
    };
  } catch (error) {
    progress(`peer: left out, because it can't be installed or started: ${(error as Error).message}`);
    return undefined;
  }
};
