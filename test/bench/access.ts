import { join } from "node:path";
import { processCpuMs } from "./cpu.ts";
import { median, percentile, run } from "./load.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import type { Replica, ReplicaOptions } from "./server-process.ts";

/** Fewer than the slots of a process, so the requested server executes each run. */
const RUNS_AT_A_TIME = 8;
/** A process needs this many before its code is compiled: the first rounds were slower by a tenth. */
const WARM_UP_RUNS = 1_500;
const RUNS = 600;
/** Short alternating rounds: other work of the machine affects all contenders. */
const ROUNDS = 4;
export const AUTH_CONFIG = join(import.meta.dirname, "graphs/langgraph-auth.json");
const KEY = "benchmark-benchmark-benchmark";

const counted = (limit: string): Record<string, string> => ({
  RATE_LIMIT_REQUESTS: limit,
  RATE_LIMIT_RUNS: limit,
});
/** The environment of a server that counts no requests. */
export const UNLIMITED = { ...counted("0"), STREAMS_PER_CALLER: "0" };
/** Out of reach, but counted. */
const LIMITED = counted("1000000000");

const CONTENDERS: readonly ({ name: string } & ReplicaOptions)[] = [
  { name: "anonymous, no limits", environment: UNLIMITED },
  { name: "anonymous, limits", environment: LIMITED },
  {
    name: "API key, limits",
    environment: { ...LIMITED, API_KEYS: KEY },
    headers: { "x-api-key": KEY },
  },
  {
    name: "Auth, filters, limits",
    argv: ["--config", AUTH_CONFIG],
    environment: LIMITED,
    headers: { authorization: "Bearer alice" },
  },
];

interface Round {
  p50: number;
  perSecond: number;
  cpu: number;
}

const measure = async (replica: Replica, count: number): Promise<Round> => {
  const threads = await createThreads(replica, count);
  const before = await processCpuMs(replica.pid);
  const { latencies, perSecond } = await run(RUNS_AT_A_TIME, count, (index) =>
    replica.http.post(`/threads/${threads[index]}/runs/wait`, { assistant_id: "two-step", input: HELLO }),
  );
  const cpu = ((await processCpuMs(replica.pid)) - before) / count;
  return { p50: percentile(latencies, 0.5), perSecond, cpu };
};

/** The cost of a run for authentication, for filters of visibility, and for counting requests. */
export const access: Scenario = {
  name: "access",
  about: "what users, filters and limits cost: /threads/{id}/runs/wait without, with limits, a key, an Auth",
  onRequest: true,
  async run(bench: Bench) {
    const add = (label: string, unit: string, better: "more" | "less", value: number, wanted?: string) =>
      bench.figures.add(
        "access",
        { label, unit, better, ...(wanted === undefined ? {} : { wanted }) },
        "threadloom",
        value,
      );
    const servers: { name: string; replica: Replica }[] = [];
    try {
      for (const { name, ...options } of CONTENDERS)
        servers.push({ name, replica: await bench.server.startReplica(options) });
      for (const { replica } of servers) await measure(replica, scaled(bench, WARM_UP_RUNS));
      for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
        const rounds = new Map<string, Round[]>(servers.map(({ name }) => [name, []]));
        for (let round = 0; round < ROUNDS; round += 1) {
          for (const { name, replica } of servers)
            rounds.get(name)!.push(await measure(replica, scaled(bench, RUNS)));
        }
        const middle = (name: string, key: keyof Round) =>
          median((rounds.get(name) ?? []).map((round) => round[key]));
        const plain = CONTENDERS[0]!.name;
        for (const { name } of servers) {
          add(`p50: ${name}`, "ms", "less", middle(name, "p50"));
          add(`CPU of the process: ${name}`, "ms/run", "less", middle(name, "cpu"));
          add(`runs/s: ${name}`, "runs/s", "more", middle(name, "perSecond"));
          const share = middle(name, "perSecond") / middle(plain, "perSecond");
          if (name !== plain) add(`runs/s of those without: ${name}`, "", "more", share, ">= 0.95");
          bench.progress(`access: ${name}: ${middle(name, "perSecond").toFixed(0)} runs/s`);
        }
      }
    } finally {
      await Promise.all(servers.map(({ replica }) => replica.stop()));
    }
  },
};
