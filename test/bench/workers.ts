import { processMemory } from "./cpu.ts";
import { percentile, run } from "./load.ts";
import type { FigureDescription } from "./results.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import { readEvents } from "./server-sent-events.ts";
import type { Replica } from "./server-process.ts";

/** Fewer than the slots of a process, so the requested server executes each run. */
const RUNS_AT_A_TIME = 8;
const STREAMS = 50;
const EVENTS_PER_STREAM = 2_000;
const BURN_MS = 20;
const WARM_UP_RUNS = 300;

interface Contender {
  name: string;
  argv: string[];
}
const CONTENDERS: readonly Contender[] = [
  { name: "inline", argv: [] },
  { name: "one worker", argv: ["--workers", "1"] },
  { name: "two workers", argv: ["--workers", "2"] },
];

const figure = (
  label: string,
  unit: string,
  better: "more" | "less",
  wanted?: string,
): FigureDescription => ({
  label,
  unit,
  better,
  ...(wanted === undefined ? {} : { wanted }),
});

const threadsOf = (replica: Replica, count: number): Promise<string[]> => createThreads(replica, count);

const measureWaits = async (replica: Replica, width: number, count: number, input: object) => {
  const threads = await threadsOf(replica, count);
  return await run(width, count, (index) => replica.http.post(`/threads/${threads[index]}/runs/wait`, input));
};

/** Events/s over all streams, each with a run of its own. */
const measureStreams = async (bench: Bench, replica: Replica): Promise<number> => {
  const threads = await threadsOf(replica, STREAMS);
  const each = scaled(bench, EVENTS_PER_STREAM);
  const body = { assistant_id: "custom-events", input: { count: each }, stream_mode: ["custom"] };
  let seen = 0;
  const onEvent = (name: string): void => void (seen += name === "custom" ? 1 : 0);
  const { elapsedMs } = await run(STREAMS, STREAMS, (index) =>
    replica.http.stream(`/threads/${threads[index]}/runs/stream`, body, readEvents(onEvent)),
  );
  if (seen !== STREAMS * each) throw new Error(`${seen} of ${STREAMS * each} events have arrived.`);
  return (seen / elapsedMs) * 1_000;
};

/** The processes that execute graphs there. */
const pidsOf = async (replica: Replica): Promise<number[]> => {
  const body = { assistant_id: "burn", input: { milliseconds: BURN_MS } };
  const answers = await Promise.all(
    Array.from({ length: RUNS_AT_A_TIME }, () => replica.http.json<{ pid: number }>("/runs/wait", body)),
  );
  return [...new Set(answers.map(({ pid }) => pid))];
};

const measure = async (bench: Bench, { name, argv }: Contender): Promise<void> => {
  const add = (description: FigureDescription, value: number): void => {
    bench.figures.add(
      "workers",
      { ...description, label: `${description.label}: ${name}` },
      "threadloom",
      value,
    );
    bench.progress(`workers: ${name}: ${description.label}: ${value.toFixed(2)} ${description.unit}`);
  };
  const replica = await bench.server.startReplica({ argv });
  try {
    const twoSteps = { assistant_id: "two-step", input: HELLO };
    await measureWaits(replica, RUNS_AT_A_TIME, scaled(bench, WARM_UP_RUNS), twoSteps);
    const waits = await measureWaits(replica, 1, scaled(bench, 200), twoSteps);
    add(figure("wait, p50", "ms", "less", "<= 0.7 more than inline"), percentile(waits.latencies, 0.5));
    add(
      figure("events through 50 streams", "events/s", "more", ">= 30,000"),
      await measureStreams(bench, replica),
    );
    const burn = { assistant_id: "burn", input: { milliseconds: BURN_MS } };
    const burned = await measureWaits(replica, RUNS_AT_A_TIME, scaled(bench, 200), burn);
    add(figure("runs that burn 20 ms", "runs/s", "more", "two workers >= 1.6 x inline"), burned.perSecond);
    const pids = (await pidsOf(replica)).filter((pid) => pid !== replica.pid);
    const memories = await Promise.all(pids.map(processMemory));
    for (const { now } of memories) add(figure("memory of a graph process", "MiB", "less", "<= 120"), now);
  } finally {
    await replica.stop();
  }
};

export const workers: Scenario = {
  name: "workers",
  about:
    "graphs in the server's process and in one and two of their own: wait, 50 streams, 20 ms of CPU, memory",
  onRequest: true,
  async run(bench) {
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const contender of CONTENDERS) await measure(bench, contender);
    }
  },
};
