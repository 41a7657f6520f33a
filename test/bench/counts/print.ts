import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { pino } from "pino";
import { startEmbeddedPostgres } from "../../../src/platform/database/embedded/embedded.ts";
import { checkOut } from "../checkout.ts";
import { tableOf } from "../report.ts";
import { ROOT } from "../server-process.ts";
import { IDLE_SECONDS, startCountedServer, type Counts } from "./counted-server.ts";
import { REQUESTS, type RequestName } from "./requests.ts";
import { typicalOf } from "./typical.ts";

const LABELS: Readonly<Record<keyof Counts, string>> = {
  statements: "statements",
  rows: "rows written",
  walBytes: "WAL without full-page images, bytes",
  calls: "calls of its own functions",
  functions: "different functions",
  files: "files of these functions",
};

export interface CountingOptions {
  /** Another commit to count, too, or the folder of a checkout with its packages. */
  commit: string | undefined;
  tries: number;
  /** Collects the resources to close at the end, also on Ctrl-C. */
  closers: (() => Promise<void>)[];
  progress(text: string): void;
}

export const printedCounts = async ({
  commit,
  tries,
  closers,
  progress,
}: CountingOptions): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-counts-"));
  closers.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  // As root, the database runs as another user, who needs access to the folder.
  if (process.getuid?.() === 0) await chmod(folder, 0o755);
  const postgres = await startEmbeddedPostgres({
    dataFolder: join(folder, "data"),
    logger: pino({ level: "warn" }),
    settings: { fsync: "off" },
  });
  closers.push(() => postgres.close());

  const other = commit === undefined ? undefined : await checkOut(commit, progress);
  if (other !== undefined) closers.push(() => other.close());
  const columns = [
    ...(other === undefined ? [] : [{ heading: commit!, root: other.root }]),
    { heading: "here", root: ROOT },
  ];
  const rows = new Map<string, number[]>();
  const add = (label: string, value: number): void =>
    void rows.set(label, [...(rows.get(label) ?? []), value]);

  for (const [index, { heading, root }] of columns.entries()) {
    const client = new pg.Client({ connectionString: postgres.connectionString });
    await client.connect();
    await client.query(`create database counted_${index}`);
    await client.end();
    const database = new URL(postgres.connectionString);
    database.pathname = `/counted_${index}`;
    const config = join(root, "test/bench/graphs/langgraph.json");
    const server = await startCountedServer({ root, config, connectionString: database.href });
    closers.push(() => server.close());
    for (const name of Object.keys(REQUESTS) as RequestName[]) {
      progress(`${heading}: ${name}`);
      await server.warmUp(name);
      const counted: Counts[] = [];
      while (counted.length < tries) counted.push(await server.count(name));
      const typical = typicalOf(counted);
      for (const key of Object.keys(LABELS) as (keyof Counts)[]) add(`${name}: ${LABELS[key]}`, typical[key]);
    }
    progress(`${heading}: idle`);
    const idle: { statements: number }[] = [];
    while (idle.length < tries / 2) idle.push(await server.countIdle());
    add("idle: statements per second", typicalOf(idle).statements / IDLE_SECONDS);
    await server.close();
  }

  const heading = ["per request", ...columns.map((column) => column.heading)];
  return tableOf([
    heading,
    ...[...rows].map(([label, values]) => [label, ...values.map((value) => value.toLocaleString("en-US"))]),
  ]);
};
