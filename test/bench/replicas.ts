import { cpus } from "node:os";
import { clusterCpuMs, machineBusyMs, ownCpuMs, processCpuMs } from "./cpu.ts";
import { firstEvents } from "./first-event.ts";
import type { HttpClient } from "./http-client.ts";
import { pause, run, WIDTH } from "./load.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import type { Replica } from "./server-process.ts";

interface Load {
  label: string;
  assistant: string;
  input: object;
  /** Parallel requests: to both processes together, or to the one. */
  width: number;
  count: number;
  /** The criterion for two processes, relative to one. */
  wanted: string;
}

const LOADS: readonly Load[] = [
  {
    label: "sleep 50 ms",
    assistant: "sleep",
    input: { milliseconds: 50 },
    width: 40, // both have all of their ten slots busy, and some runs wait
    count: 400,
    wanted: ">= 1.5",
  },
  {
    label: "two steps",
    assistant: "two-step",
    input: HELLO,
    width: WIDTH,
    count: 500,
    wanted: ">= 1 (noise: 0.95)",
  },
];

/** V8 compiles the code of a run after some hundreds of them, in each process. */
const WARM_UP_RUNS = 400;
/** A process checks once a second whether others are on its database; without others it sends no signals. */
const ALONE_AFTER_MS = 1_500;

const doRuns = async (bench: Bench, load: Load, servers: readonly HttpClient[], count: number) => {
  const threads = await createThreads(bench.server.remote, count);
  return async (index: number): Promise<void> => {
    const { body } = await servers[index % servers.length]!.post(`/threads/${threads[index]}/runs/wait`, {
      assistant_id: load.assistant,
      input: load.input,
    });
    if (body.includes("__error__")) throw new Error(`A run of ${load.assistant} failed: ${body}`);
  };
};

const warmUp = async (bench: Bench, servers: readonly HttpClient[]): Promise<void> => {
  for (const load of LOADS) {
    const brief = load.assistant === "sleep" ? { ...load, input: { milliseconds: 1 } } : load;
    const count = WARM_UP_RUNS * servers.length;
    await run(load.width, count, await doRuns(bench, brief, servers, count));
  }
};

/** Milliseconds of CPU used so far, by process. */
const cpuUsed = async (bench: Bench, second: Replica | undefined) => ({
  servers:
    (await bench.server.remote.cpu()).server + (second === undefined ? 0 : await processCpuMs(second.pid)),
  database: await clusterCpuMs(await bench.server.postmasterPid()),
  client: ownCpuMs(),
  machine: machineBusyMs(),
});

const measure = async (bench: Bench, load: Load, second: Replica | undefined): Promise<number> => {
  const servers = [bench.server.remote.http, ...(second === undefined ? [] : [second.http])];
  const count = scaled(bench, load.count);
  const work = await doRuns(bench, load, servers, count);
  const before = await cpuUsed(bench, second);
  const { perSecond, elapsedMs } = await run(load.width, count, work);
  const after = await cpuUsed(bench, second);

  const title = `${load.label}, ${servers.length === 1 ? "one process" : "two processes"}`;
  const add = (what: string, unit: string, better: "more" | "less", value: number): void =>
    bench.figures.add("replicas", { label: `${title}${what}`, unit, better }, "threadloom", value);
  add("", "runs/s", "more", perSecond);
  let ours = 0;
  for (const who of ["servers", "database", "client"] as const) {
    const used = after[who] - before[who];
    ours += used;
    add(`: CPU, ${who}`, "ms/run", "less", used / count);
  }
  const busy = (after.machine - before.machine) / elapsedMs;
  add(": busy cores, by all three", "cores", "less", ours / elapsedMs);
  add(`: busy cores, of ${cpus().length}, by anybody`, "cores", "less", busy);
  bench.progress(`replicas: ${title}: ${perSecond.toFixed(0)} runs/s, ${busy.toFixed(2)} cores busy`);
  return perSecond;
};

const measureAll = async (bench: Bench, second?: Replica): Promise<number[]> => {
  const rates: number[] = [];
  for (const load of LOADS) rates.push(await measure(bench, load, second));
  return rates;
};

const measureAlone = async (bench: Bench): Promise<number[]> => {
  await pause(ALONE_AFTER_MS);
  return await measureAll(bench);
};

export const replicas: Scenario = {
  name: "replicas",
  about:
    "two processes on one database, requests by turns, against one: runs/s; and the first event on the other",
  onRequest: true,
  async run(bench) {
    const first = bench.server.remote.http;
    await warmUp(bench, [first]);
    let before = await measureAlone(bench);
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      const second = await bench.server.startReplica();
      let both: number[];
      try {
        await warmUp(bench, [first, second.http]);
        both = await measureAll(bench, second);
        await firstEvents(bench, second);
      } finally {
        await second.stop();
      }
      const after = await measureAlone(bench);
      for (const [index, load] of LOADS.entries()) {
        // Relative to the measurements before and after, because other work and V8's state change meanwhile.
        const ratio = both[index]! / ((before[index]! + after[index]!) / 2);
        bench.figures.add(
          "replicas",
          { label: `${load.label}, two processes ÷ one`, unit: "x", better: "more", wanted: load.wanted },
          "threadloom",
          ratio,
        );
        bench.progress(`replicas: ${load.label}: two processes do ${ratio.toFixed(2)} times the runs of one`);
      }
      before = after;
    }
  },
};
