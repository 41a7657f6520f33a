import { execFileSync } from "node:child_process";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import type { Machine } from "./results.ts";
import type { ServerUnderTest } from "./server-process.ts";

const commitOf = (): string => {
  try {
    const git = (...args: string[]) =>
      execFileSync("git", args, { encoding: "utf8", cwd: import.meta.dirname }).trim();
    return `${git("rev-parse", "--short", "HEAD")}${git("status", "--porcelain", "--", "../../src") === "" ? "" : " with changes"}`;
  } catch {
    return "unknown";
  }
};

/** @param node the version that runs the server */
export const describeMachine = async (
  server: ServerUnderTest,
  node: string,
  loadBefore: number,
): Promise<Machine> => {
  const names = ["server_version", "fsync", "synchronous_commit", "shared_buffers"];
  const rows = await server.query<{ name: string; value: string }>(
    `select name, current_setting(name) as value from pg_settings where name in (${names.map((name) => `'${name}'`).join(", ")})`,
  );
  const { server_version = "", ...settings } = Object.fromEntries(
    rows.map(({ name, value }) => [name, value]),
  );
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commitOf(),
    processor: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node,
    postgres: server_version,
    settings,
    loadBefore,
  };
};

export const currentLoad = (): number => loadavg()[0] ?? NaN;

export const formatMachine = (machine: Machine): string =>
  [
    `${machine.date}, commit ${machine.commit}`,
    `${machine.cores} cores of ${machine.processor}, ${machine.memoryGiB} GiB, ${machine.system}; load before: ${machine.loadBefore?.toFixed(1)}`,
    `Node ${machine.node}; PostgreSQL ${machine.postgres} (${Object.entries(machine.settings)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ")}); client, server and database share the cores`,
  ].join("\n");
