import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Credentials } from "./callers.ts";
import type { HeldConnections, Kind } from "./connections.ts";
import type { NormalLoad } from "./normal-load.ts";

const PROCESS = fileURLToPath(new URL("connections.ts", import.meta.url));
const CONNECTIONS: Record<Kind, number> = {
  idle: 5_000,
  "slow headers": 400,
  "slow bodies": 300,
  "slow readers": 300,
};

/** Seconds after which each kind must be closed by the server's defaults, and the time for noticing that. */
const GONE_AFTER: Record<Kind, number> = {
  idle: 72, // KEEP_ALIVE_SECONDS
  "slow headers": 20, // headersTimeoutSeconds
  "slow bodies": 60, // requestTimeoutSeconds
  "slow readers": 60, // src/http/open-answers.ts
};
const LOOKS_SECONDS = 25;
const PATIENCE_MS = 120_000;
const POLL_MS = 500;
/** Connections to the database and of the sender open and close. */
const DESCRIPTORS_APART = 20;

export const descriptorsOf = async (pid: number): Promise<number> =>
  (await readdir(`/proc/${pid}/fd`).catch(() => [])).length;

const descriptorsAtMost = async (): Promise<number> => {
  const asking = spawn("sh", ["-c", "ulimit -n"], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  asking.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(asking, "close");
  const number = Number(said);
  return Number.isInteger(number) ? number : Number.POSITIVE_INFINITY;
};

export interface ManyConnections {
  beside: NormalLoad;
  held: HeldConnections;
  /** Seconds after which the server had closed all of them. */
  allGone: number;
  descriptors: { before: number; during: number; after: number };
  complaints: string[];
}

/** Holds idle and slow connections in a process of its own while others are measured, until all of them are closed. */
export const holdMany = async (server: {
  url: string;
  pid: number;
  credentials: Credentials;
  normalLoad: () => Promise<NormalLoad>;
}): Promise<ManyConnections> => {
  const needed = Object.values(CONNECTIONS).reduce((sum, count) => sum + count, 0) + 200;
  const allowed = await descriptorsAtMost();
  if (allowed < needed)
    throw new Error(`A process may have ${allowed} files open here (ulimit -n), and ${needed} are needed.`);
  const before = await descriptorsOf(server.pid);
  const child = spawn(
    process.execPath,
    ["--import", "tsx", PROCESS, server.url, JSON.stringify(CONNECTIONS), JSON.stringify(server.credentials)],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  try {
    const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    await said.next();
    const openedAt = performance.now();
    const during = await descriptorsOf(server.pid);
    const beside = await server.normalLoad();
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until && (await descriptorsOf(server.pid)) > before + DESCRIPTORS_APART)
      await pause(POLL_MS);
    const allGone = Math.round((performance.now() - openedAt) / 1_000);
    child.stdin.end();
    const held = JSON.parse((await said.next()).value ?? "") as HeldConnections;
    const after = await descriptorsOf(server.pid);
    const complaints: string[] = [];
    for (const [kind, seconds] of Object.entries(GONE_AFTER) as [Kind, number][]) {
      const { opened, failed, gone, lastGone } = held[kind];
      if (failed > 0 || opened < CONNECTIONS[kind])
        complaints.push(`connections: ${failed} ${kind} could not be opened`);
      if (kind !== "slow readers" && (gone < opened || lastGone > seconds + LOOKS_SECONDS))
        complaints.push(
          `connections: ${opened - gone} ${kind} stayed, others for ${lastGone} s instead of ${seconds} s`,
        );
    }
    if (during < before + needed - 300)
      complaints.push(`connections: only ${during - before} were open beside others`);
    if (allGone > Math.max(...Object.values(GONE_AFTER)) + LOOKS_SECONDS)
      complaints.push(`connections: the last were there for ${allGone} s`);
    if (after > before + DESCRIPTORS_APART)
      complaints.push(`connections: ${after} file descriptors are open after them, ${before} were before`);
    return { beside, held, allGone, descriptors: { before, during, after }, complaints };
  } finally {
    child.kill("SIGKILL");
  }
};
