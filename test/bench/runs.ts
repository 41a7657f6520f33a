import type { BareLibrary, GraphId } from "./bare-library.ts";
import type { CpuSample } from "./cpu.ts";
import { percentile, run, RUNS_PER_SECOND, WIDTH } from "./load.ts";
import type { ContenderName } from "./results.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import type { RemoteServer } from "./server-process.ts";

/** One contender's way to run a graph to its end, each time on a thread of its own. */
export interface Runner {
  name: ContenderName;
  /** Creates the data for the next `count` runs; returns a function that executes one of them. */
  prepare(count: number): Promise<(index: number) => Promise<void>>;
  cpu(): Promise<CpuSample>;
  /** Bytes of its database's log so far; absent without a database. */
  walBytes?(): Promise<number>;
}

const remoteRunner = (remote: RemoteServer, graph: GraphId): Runner => ({
  name: remote.name,
  cpu: remote.cpu,
  ...(remote.walBytes && { walBytes: remote.walBytes }),
  async prepare(count) {
    const threads = await createThreads(remote, count);
    return async (index) => {
      const { body } = await remote.http.post(`/threads/${threads[index]}/runs/wait`, {
        assistant_id: graph,
        input: HELLO,
      });
      if (body.includes("__error__")) throw new Error(`A run of ${graph} failed: ${body}`);
    };
  },
});

export const libraryRunner = (library: BareLibrary, id: GraphId): Runner => {
  const graph = library.graph(id);
  return {
    name: library.name,
    cpu: library.cpu,
    prepare: async () => async () => {
      await graph.invoke(HELLO, library.newThread());
    },
  };
};

interface Wanted {
  p50: string;
  perSecond: string;
  cpu: string;
}

/** `title` precedes each label, if the scenario has other runs, too. */
export const measure = async (
  bench: Bench,
  { scenario, title = "" }: { scenario: string; title?: string },
  runner: Runner,
  counts: { single: number; parallel: number },
  wanted: Partial<Wanted>,
): Promise<void> => {
  const { name } = runner;
  const add = (what: string, unit: string, better: "more" | "less", value: number, want?: string): void => {
    const label = `${title}${what}`;
    bench.figures.add(scenario, { label, unit, better, ...(want && { wanted: want }) }, name, value);
  };

  const single = await run(1, counts.single, await runner.prepare(counts.single));
  add("p50, 1 at a time", "ms", "less", percentile(single.latencies, 0.5), wanted.p50);
  add("p95, 1 at a time", "ms", "less", percentile(single.latencies, 0.95));

  const work = await runner.prepare(counts.parallel);
  const before = await runner.cpu();
  const walBefore = await runner.walBytes?.();
  const parallel = await run(WIDTH, counts.parallel, work);
  const after = await runner.cpu();
  const walAfter = await runner.walBytes?.();
  const server = (after.server - before.server) / counts.parallel;
  const database = (after.database - before.database) / counts.parallel;
  add(RUNS_PER_SECOND, "runs/s", "more", parallel.perSecond, wanted.perSecond);
  add("CPU of the process", "ms/run", "less", server);
  // A library without a database writes nothing: the cluster's writes meanwhile are its own maintenance.
  const usesDatabase = name !== "none" && name !== "memory";
  if (usesDatabase) add("CPU of the database", "ms/run", "less", database);
  if (walBefore !== undefined && walAfter !== undefined)
    add("WAL", "KB/run", "less", (walAfter - walBefore) / counts.parallel / 1_000);
  add("CPU together", "ms/run", "less", server + (usesDatabase ? database : 0), wanted.cpu);
  bench.progress(
    `${scenario}: ${name}: ${title}${percentile(single.latencies, 0.5).toFixed(2)} ms, ${parallel.perSecond.toFixed(0)} runs/s`,
  );
};

const runScenario = (
  name: string,
  about: string,
  graph: GraphId,
  counts: { single: number; parallel: number; warmUp: number },
  wanted: Partial<Wanted>,
): Scenario => ({
  name,
  about,
  async run(bench) {
    const size = { single: scaled(bench, counts.single), parallel: scaled(bench, counts.parallel) };
    const runners = () => [
      ...bench.remotes.map((remote) => remoteRunner(remote, graph)),
      ...[bench.libraries.none, bench.libraries.memory(), bench.libraries.official].map((library) =>
        libraryRunner(library, graph),
      ),
    ];
    for (const runner of runners()) {
      await run(WIDTH, counts.warmUp, await runner.prepare(counts.warmUp));
    }
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const runner of runners()) await measure(bench, { scenario: name }, runner, size, wanted);
    }
  },
});

export const wait = runScenario(
  "wait",
  "/threads/{id}/runs/wait of a graph of two steps, each run on a new thread",
  "two-step",
  { single: 150, parallel: 500, warmUp: 200 },
  { p50: "<= 10", perSecond: ">= 250", cpu: "<= 6" },
);

export const tenSteps = runScenario(
  "ten-steps",
  "/threads/{id}/runs/wait of a graph of ten steps, each run on a new thread",
  "ten-steps",
  { single: 50, parallel: 150, warmUp: 40 },
  {},
);
