import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createHttpClient } from "../http-client.ts";
import { now, pause } from "../load.ts";
import { createThreads } from "../scenario.ts";
import { spawnProcess } from "../server-process.ts";
import { openCoverage } from "./coverage.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import { openWrites } from "./database-writes.ts";
import { REQUESTS, type RequestName } from "./requests.ts";

export interface Counts {
  statements: number;
  rows: number;
  /** Bytes of WAL without full-page images. */
  walBytes: number;
  calls: number;
  functions: number;
  files: number;
}

/** Before that, caches are empty and connections have not prepared their statements. */
const WARM_UP_REQUESTS = 10;
const MOMENT_MS = 20;
/** The longest interval at which an idle server queries the database. */
export const IDLE_SECONDS = 2;

export interface CountedServerOptions {
  /** The package, or a checkout of the project, whose server runs. */
  root: string;
  config: string;
  /** An empty database, for a superuser. */
  connectionString: string;
  /** The variable TRACES; undefined: a checkout that may not know it. */
  traces?: string;
}

/** Starts a server in a process of its own, whose statements, writes and calls are counted. */
export const startCountedServer = async ({
  root,
  config,
  connectionString,
  traces,
}: CountedServerOptions) => {
  const proxy = await startCountingProxy(connectionString);
  const child = spawnProcess(
    [
      process.execPath,
      "--inspect=127.0.0.1:0",
      join(root, "bin/threadloom.js"),
      "start",
      ...["--config", config, "--host", "127.0.0.1", "--port", "0"],
    ],
    {
      cwd: root,
      environment: {
        DATABASE_URL: proxy.connectionString,
        LOG_FORMAT: "json",
        ...(traces === undefined ? {} : { TRACES: traces }),
      },
    },
  );
  const closers = [() => child.stop(), () => proxy.close()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const inspectorUrl = (await child.said(/Debugger listening on (ws:\S+)/))[1]!;
    const address = (await child.said(/"msg":"listening on ([^"]+)"/))[1]!;
    const http = createHttpClient(address, {});
    closers.unshift(async () => http.close());
    const writes = await openWrites(connectionString);
    closers.unshift(() => writes.close());
    const code = join(realpathSync(root), existsSync(join(root, "src/main.ts")) ? "src/" : "dist/");
    const coverage = await openCoverage(inspectorUrl, pathToFileURL(code).href);
    closers.unshift(async () => coverage.close());

    /** Waits until the server is idle for a moment. Returns its calls until then. */
    const settled = async (): Promise<Pick<Counts, "calls" | "functions" | "files">> => {
      let calls = 0;
      const functions = new Set<string>();
      const files = new Set<string>();
      for (;;) {
        await pause(MOMENT_MS);
        const taken = await coverage.take();
        if (taken.calls === 0) return { calls, functions: functions.size, files: files.size };
        calls += taken.calls;
        for (const name of taken.functions) functions.add(name);
        for (const name of taken.files) files.add(name);
      }
    };

    const count = async (name: RequestName): Promise<Counts> => {
      const [threadId] = await createThreads({ http }, 1);
      await settled();
      const before = { position: await writes.position(), statements: proxy.statements() };
      await REQUESTS[name](http, threadId!);
      const called = await settled();
      const statements = proxy.statements() - before.statements;
      return {
        statements,
        ...(await writes.since(before.position)),
        ...called,
      };
    };

    return {
      async warmUp(name: RequestName): Promise<void> {
        const threads = await createThreads({ http }, WARM_UP_REQUESTS);
        for (const threadId of threads) await REQUESTS[name](http, threadId);
      },
      /** The cost of one request, including the server's periodic work meanwhile. */
      count,
      /** The minimal cost of an idle server in `IDLE_SECONDS`, observed for twice as long. */
      async countIdle(): Promise<Pick<Counts, "statements">> {
        await settled();
        const samples: { at: number; statements: number }[] = [];
        let least = Infinity;
        for (const end = now() + 2 * IDLE_SECONDS * 1_000; now() < end; await pause(MOMENT_MS)) {
          const last = { at: now(), statements: proxy.statements() };
          samples.push(last);
          const first = samples.findLast(({ at }) => at <= last.at - IDLE_SECONDS * 1_000);
          if (first !== undefined) least = Math.min(least, last.statements - first.statements);
        }
        return { statements: least };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
};
