import { now, pause, run, WIDTH } from "./load.ts";
import { createThreads, scaled, type Scenario } from "./scenario.ts";

const SLEEP_MS = 50;
/** The default of N_JOBS_PER_WORKER. */
const SLOTS = 10;
const POLL_MS = 10;
/** Until V8 has compiled the code that creates and executes them. */
const WARM_UP = 300;

const ACCEPTED = { label: "accepted", unit: "runs/s", better: "more", wanted: ">= 1,000" } as const;
const DRAINED = { label: "drained, times the ideal", unit: "x", better: "less", wanted: "<= 1.15" } as const;

export const background: Scenario = {
  name: "background",
  about: `300 background runs that sleep ${SLEEP_MS} ms, ${WIDTH} connections, ${SLOTS} at a time; from the first request to the last end`,
  async run(bench) {
    const count = scaled(bench, 300);
    const idealMs = (count / SLOTS) * SLEEP_MS;
    for (const remote of bench.remotes) {
      const threads = await createThreads(remote, WARM_UP);
      await run(WIDTH, WARM_UP, (index) =>
        remote.http.post(`/threads/${threads[index]}/runs`, {
          assistant_id: "sleep",
          input: { milliseconds: 1 },
        }),
      );
      while ((await remote.http.json<number>("/threads/count", { status: "busy" })) > 0) await pause(POLL_MS);
    }
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const remote of bench.remotes) {
        const threads = await createThreads(remote, count);
        const started = now();
        const accepted = await run(WIDTH, count, (index) =>
          remote.http.post(`/threads/${threads[index]}/runs`, {
            assistant_id: "sleep",
            input: { milliseconds: SLEEP_MS },
          }),
        );
        while ((await remote.http.json<number>("/threads/count", { status: "busy" })) > 0)
          await pause(POLL_MS);
        const drainedMs = now() - started;
        bench.figures.add("background", ACCEPTED, remote.name, accepted.perSecond);
        bench.figures.add("background", DRAINED, remote.name, drainedMs / idealMs);
        bench.progress(
          `background: ${remote.name}: ${accepted.perSecond.toFixed(0)} accepted/s, drained in ` +
            `${drainedMs.toFixed(0)} ms (ideal ${idealMs.toFixed(0)})`,
        );
      }
      for (const library of [bench.libraries.none, bench.libraries.memory(), bench.libraries.official]) {
        const graph = library.graph("sleep");
        const drained = await run(SLOTS, count, () =>
          graph.invoke({ milliseconds: SLEEP_MS }, library.newThread()),
        );
        bench.figures.add("background", DRAINED, library.name, drained.elapsedMs / idealMs);
      }
    }
  },
};
