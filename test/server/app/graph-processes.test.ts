import { expect, test, vi } from "vitest";
import {
  awaitLoaded,
  openGraphExecutor,
  type GraphExecutorParts,
} from "../../../src/server/app/graph-processes.ts";
import type { Config } from "../../../src/platform/config/config.ts";
import { createLogger } from "../../../src/platform/lib/logger.ts";

vi.mock(import("../../../src/engine/executors/process/pool.ts"), () => ({ GraphProcesses: vi.fn() }));

/** The log lines of a start with this many processes and connections. */
const warningsOf = (graphProcesses: number, databasePoolSize: number): string => {
  const lines: string[] = [];
  const logger = createLogger({
    level: "warn",
    destination: { write: (line: string) => void lines.push(line) },
  });
  const encryption = { encryptionKeys: [], encryptedMetadataKeys: [] };
  const config = { graphProcesses, databasePoolSize, role: "all", ...encryption } as unknown as Config;
  openGraphExecutor(config, { logger } as unknown as GraphExecutorParts);
  return lines.join("");
};

test("a start with more processes than DATABASE_POOL_SIZE warns, and names both settings", () => {
  expect(warningsOf(15, 20)).toContain(
    "WORKERS=15 is 15 graph processes, which hold up to 36 database connections with the server, though DATABASE_POOL_SIZE is 20",
  );
  expect(warningsOf(7, 20)).toBe("");
});

test("a server whose graph processes never load the graphs becomes ready without them, and logs that", async () => {
  const lines: string[] = [];
  const logger = createLogger({ level: "warn", destination: { write: (line) => void lines.push(line) } });
  const never = { loaded: new Promise<void>(() => undefined) };
  await awaitLoaded(never, { forMs: 10, logger });
  expect(lines.join("")).toContain("no graph process has loaded the graphs within 0.01 seconds");
  lines.length = 0;
  await awaitLoaded(never, { signal: AbortSignal.abort(), logger });
  await awaitLoaded({ loaded: Promise.resolve() }, { logger });
  expect(lines).toEqual([]);
});
