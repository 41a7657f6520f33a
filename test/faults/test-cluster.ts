import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { kill } from "node:process";
import { promisify } from "node:util";
import pg from "pg";
import { pino } from "pino";
import { migrate } from "../../src/platform/database/migrate.ts";
import { DEFAULT_SCHEMA } from "../../src/platform/database/schema.ts";
import { databaseNamed, distributeTemplate, onServer } from "../helpers/citus.ts";
import { eventually } from "../helpers/conditions.ts";
import type { TestDatabase } from "./test-database.ts";

const run = promisify(execFile);

export interface FaultNode {
  /** The address of a superuser. */
  url: string;
  /** `port`: another one than that of its configuration. */
  start(port?: number): Promise<void>;
  /** Like a power failure: without notice or final writes. */
  stopHard(): Promise<void>;
  /** It accepts connections but answers nothing, as a machine that hangs. Returns what wakes it. */
  hang(): Promise<() => void>;
}

const DROP_SLOTS_OF_MOVES = `select pg_drop_replication_slot(slot_name) from pg_replication_slots
  where slot_name like 'citus_shard_move%' and not active`;

interface Settings {
  folder: string;
  binaries: string;
}

/** A node of a cluster on this machine. This process has to be its owner, or root. */
const nodeAt = async (url: string): Promise<FaultNode> => {
  const { folder, binaries } = await onServer(url, async (client) => {
    const { rows } = await client.query<Settings>(
      `select current_setting('data_directory') as folder,
         (select setting from pg_config where name = 'BINDIR') as binaries`,
    );
    return rows[0]!;
  });
  const { uid, gid } = await stat(folder);
  const postmaster = async (): Promise<number | undefined> => {
    const text = await readFile(join(folder, "postmaster.pid"), "utf8").catch(() => "");
    const pid = Number(text.split("\n", 1)[0]);
    if (!(pid > 0)) return undefined;
    try {
      kill(pid, 0);
      return pid;
    } catch {
      return undefined;
    }
  };
  return {
    url,
    async start(port) {
      const moved = port === undefined ? [] : ["-o", `-p ${port}`];
      const options = ["-D", folder, "-l", join(folder, "log"), ...moved, "-w", "start"];
      await run(join(binaries, "pg_ctl"), options, {
        uid,
        gid,
        cwd: "/",
        env: { PATH: process.env["PATH"], HOME: folder },
      });
    },
    async stopHard() {
      const pid = await postmaster();
      if (pid === undefined) return;
      kill(pid, "SIGQUIT");
      await eventually("the node is gone", async () => (await postmaster()) === undefined);
    },
    async hang() {
      const pid = await postmaster();
      if (pid === undefined) throw new Error("The node does not run.");
      const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]);
      const backends = stdout.split("\n").map(Number).filter(Boolean);
      const all = [pid, ...backends];
      const signal = (each: number, name: NodeJS.Signals): void => {
        try {
          kill(each, name);
        } catch {
          // It has ended meanwhile.
        }
      };
      for (const each of all) signal(each, "SIGSTOP");
      return () => {
        for (const each of all) signal(each, "SIGCONT");
      };
    },
  };
};

/** The cluster of TEST_CITUS_NODES as the database of the fault tests. Its nodes are on this machine. */
export const startTestCluster = async (urls: readonly string[]): Promise<TestDatabase> => {
  const nodes = await Promise.all(urls.map(nodeAt));
  const logger = pino({ level: "warn", base: null });
  const created: string[] = [];
  return {
    nodes,
    start: async () => void (await Promise.all(nodes.map((node) => node.start()))),
    stopHard: async () => void (await Promise.all(nodes.map((node) => node.stopHard()))),
    async create(name) {
      // A move that a stopped node interrupted leaves its slot, which has the same name in each database.
      for (const url of urls) await onServer(url, (client) => client.query(DROP_SLOTS_OF_MOVES));
      const [coordinator, ...others] = urls as [string, ...string[]];
      created.push(name);
      await onServer(coordinator, (client) => client.query(`create database ${pg.escapeIdentifier(name)}`));
      const address = databaseNamed(coordinator, name);
      await migrate(address, { schema: DEFAULT_SCHEMA, logger });
      await distributeTemplate(coordinator, others, name);
      return address;
    },
    async close() {
      for (const url of urls)
        for (const name of created)
          await onServer(url, (client) =>
            client.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`),
          );
    },
  };
};
