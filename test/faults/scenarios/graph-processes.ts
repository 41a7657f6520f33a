import { fork } from "node:child_process";
import { once } from "node:events";
import { kill } from "node:process";
import { loadavg } from "node:os";
import type { Harm } from "../../fixtures/harms.ts";
import { eventually } from "../../helpers/conditions.ts";
import { isAlive } from "../../helpers/is-alive.ts";
import {
  aLedgerRun,
  faultsOf,
  percentile,
  seconds,
  type Bench,
  type LedgerLine,
  type LedgerRun,
  type Replica,
} from "../bench.ts";
import type { OkFigures } from "../ok-client.ts";
import { complaintsWhere, type Finding, type Scenario } from "../scenario.ts";

/** Causes of a graph process's end, and the affected runs (`--workers`). */

const BACK_P50_MS = 1_000;
const OK_P99_MS = 50;
const NEIGHBOURS = 6;
/** Long enough for a neighbour to outlast all deaths of a round. */
const NEIGHBOUR = { steps: 20, milliseconds: 250 };

/** Requests `/ok` in a process of its own until it is stopped. */
const askOk = async ({ url }: Replica): Promise<() => Promise<OkFigures>> => {
  const client = fork(new URL("../ok-client.ts", import.meta.url), [url], {
    execArgv: ["--import", "tsx"],
  });
  await once(client, "message");
  return async () => {
    client.send("end");
    const [figures] = (await once(client, "message")) as [OkFigures];
    return figures;
  };
};

interface Death {
  at: number;
  runs: readonly string[];
}

/** The ends of graph processes, as the server's log reports them at once. */
const deathsOf = ({ process: server }: Replica): Death[] =>
  server
    .output()
    .split("\n")
    .filter((line) => line.includes('"msg":"a graph process ') && line.includes('"level":50'))
    .map((line) => JSON.parse(line) as { time: number; runs: string[] })
    .map(({ time, runs }) => ({ at: time, runs }));

/** Milliseconds from the death of a process to the next step of each of its runs; none for a run that it ended. */
const recoveries = (deaths: readonly Death[], ledger: readonly LedgerLine[]): number[] =>
  deaths.flatMap(({ at, runs }) =>
    runs.flatMap((run) => {
      const lines = ledger.filter((line) => line.run === run);
      const lost = Math.max(0, ...lines.filter((line) => line.at <= at).map(({ attempt }) => attempt));
      const next = lines.find((line) => line.at >= at && line.attempt > lost);
      return next === undefined ? [] : [next.at - at];
    }),
  );

/** Lines of an attempt after a later attempt's first line: both worked at once. */
const overlaps = (ledger: readonly LedgerLine[]): number =>
  ledger.filter((line) =>
    ledger.some((other) => other.run === line.run && other.attempt > line.attempt && other.at < line.at),
  ).length;

/** Steps that were completed more than once: completed, and not yet stored when their process died. */
const repeated = (ledger: readonly LedgerLine[]): number => {
  const ends = ledger.filter(({ phase }) => phase === "end").map(({ run, step }) => `${run} ${step}`);
  return ends.length - new Set(ends).size;
};

const startNeighbours = async (bench: Bench, replica: Replica): Promise<LedgerRun[]> => {
  const runs: LedgerRun[] = [];
  for (let count = 0; count < NEIGHBOURS; count += 1) runs.push(await aLedgerRun(replica, NEIGHBOUR));
  for (const { runId } of runs) await bench.untilNoted("a first step", (line) => line.run === runId);
  return runs;
};

interface Judged {
  bench: Bench;
  /** Returns the final status of the neighbours. */
  witness: Replica;
  neighbours: readonly LedgerRun[];
  deaths: readonly Death[];
  lost: number;
  backWithinMs: number;
}

/** The checks that hold for every fault. */
const judge = async ({
  bench,
  witness,
  neighbours,
  deaths,
  lost,
  backWithinMs,
}: Judged): Promise<Finding> => {
  const ledger = await bench.ledger();
  const doubled = (await bench.doubledWinners()) + overlaps(ledger);
  const faults = await faultsOf(witness.api, neighbours);
  const back = recoveries(deaths, ledger);
  const [p50, max] = [percentile(back, 0.5), Math.max(...back)];
  const well = neighbours.length - faults.length;
  return {
    figure: `${deaths.length} deaths, back at work ${back.length} times: p50 ${seconds(p50)}, max ${seconds(max)}; neighbours well: ${well} of ${neighbours.length}; lost ${lost}; doubled ${doubled} (steps taken again: ${repeated(ledger)})`,
    complaints: [
      ...faults,
      ...complaintsWhere({
        "a run was lost": lost > 0,
        "two attempts worked": doubled > 0,
        "nothing had to go on": back.length === 0,
        [`the median is ${p50} ms`]: !(p50 <= backWithinMs),
      }),
    ],
  };
};

const withOk = ({ figure, complaints }: Finding, ok: OkFigures, load: number): Finding => ({
  figure: `${figure}; /ok p99 ${ok.p99.toFixed(0)} ms, max ${ok.max.toFixed(0)} ms of ${ok.asked}; load ${load.toFixed(1)}`,
  complaints: [
    ...complaints,
    ...complaintsWhere({
      [`/ok failed ${ok.failed} times`]: ok.failed > 0,
      [`p99 of /ok is ${ok.p99.toFixed(0)} ms`]: !(ok.p99 < OK_P99_MS),
    }),
  ],
});

export interface HarmfulRunsOptions {
  number: number;
  title: string;
  harm: Harm;
  rounds: number;
  environment?: Record<string, string>;
}

/** Runs that end their graph process in each attempt, beside harmless ones. */
export const harmfulRuns = ({
  number,
  title,
  harm,
  rounds,
  environment = {},
}: HarmfulRunsOptions): Scenario => ({
  number,
  title: `--workers 2: ${title}`,
  criterion:
    "ended as error after 3 attempts (the first death by memory is none), with a sentence that says so; neighbours end as success; back at work p50 <= 1 s after a death; /ok p99 < 50 ms",
  async run({ bench }) {
    const replica = await bench.start({ environment: { WORKERS: "2", ...environment } });
    const neighbours: LedgerRun[] = [];
    const complaints: string[] = [];
    // The first run waits for the first start of a process, which is not measured.
    await replica.api.aFinishedRun(await replica.api.aThread(), {
      assistant_id: "two-step",
      input: { messages: [] },
    });
    const endAsking = await askOk(replica);
    let lost = 0;
    for (let round = 0; round < rounds; round += 1) {
      neighbours.push(...(await startNeighbours(bench, replica)));
      const { threadId, runId } = await aLedgerRun(replica, { steps: 4, milliseconds: 100, harm, harmAt: 2 });
      lost += await bench.untilAllEnded(120_000);
      const { status } = await replica.api.run(threadId, runId);
      const { error } = await replica.api.thread(threadId);
      complaints.push(
        ...complaintsWhere({
          [`the bad run is ${status}`]: status !== "error",
          [`its error is ${error?.message}`]: !/after 3 attempts: .+\.$/.test(error?.message ?? ""),
        }),
      );
    }
    const load = loadavg()[0] ?? Number.NaN;
    const ok = await endAsking();
    const deaths = deathsOf(replica);
    const found = await judge({
      bench,
      witness: replica,
      neighbours,
      deaths,
      lost,
      backWithinMs: BACK_P50_MS,
    });
    found.complaints.push(
      ...complaints,
      ...complaintsWhere({
        [`${deaths.length} processes died`]:
          deaths.length < 3 * rounds || deaths.length > (harm === "memory" ? 4 : 3) * rounds,
      }),
    );
    return withOk(found, ok, load);
  },
});

/** Graph processes that are killed from outside, one after the other. */
export const killedGraphProcesses = ({ number, kills }: { number: number; kills: number }): Scenario => ({
  number,
  title: "--workers 2: kill -9 of a graph process",
  criterion: "every run ends as success; back at work p50 <= 1 s after a death; /ok p99 < 50 ms",
  scaled: `${kills} kills, with MAX_ATTEMPTS=10`,
  async run({ bench }) {
    const replica = await bench.start({ environment: { WORKERS: "2", MAX_ATTEMPTS: "10" } });
    const neighbours = await startNeighbours(bench, replica);
    const endAsking = await askOk(replica);
    const deaths: Death[] = [];
    const killed = new Set<number>();
    for (let count = 0; count < kills; count += 1) {
      const { pid } = await eventually("a step in a process that lives", async () =>
        (await bench.ledger()).findLast((line) => !killed.has(line.pid)),
      );
      killed.add(pid);
      const at = Date.now();
      kill(pid, "SIGKILL");
      const death = await eventually("the server notices it", () => deathsOf(replica)[count]);
      deaths.push({ ...death, at });
      for (const run of death.runs) {
        await bench.untilGoesOnOrEnds(run, at);
      }
    }
    const lost = await bench.untilAllEnded();
    const load = loadavg()[0] ?? Number.NaN;
    const ok = await endAsking();
    const found = await judge({
      bench,
      witness: replica,
      neighbours,
      deaths,
      lost,
      backWithinMs: BACK_P50_MS,
    });
    return withOk(found, ok, load);
  },
});

/** The criterion of fault 1 for a killed worker, which is noticed by its lease. */
const TAKEN_OVER_P50_MS = 8_000;
/** A graph process checks its server each half second. */
const CHILD_ENDS_MS = 2_000;

/** The servers of graph processes are killed; a looping graph does not keep its process alive. */
export const killedMainProcess = ({ number }: { number: number }): Scenario => ({
  number,
  title: "--workers 1: kill -9 of the server's process, while one of its graphs loops",
  criterion:
    "its graph process ends within 2 s; another server goes on with its runs, p50 <= 8 s; every run ends; /ok p99 < 50 ms",
  async run({ bench }) {
    const start = () => bench.start({ environment: { WORKERS: "1" } });
    const [victim, other] = await Promise.all([start(), start()]);
    const neighbours = await startNeighbours(bench, victim);
    const endAsking = await askOk(other);
    const harmless = { steps: 2, milliseconds: 100 };
    const looping = await aLedgerRun(victim, { ...harmless, harm: "loop", harmAt: 2, harmAttempts: 1 });
    const { pid } = await bench.untilNoted(
      "the loop",
      (line) => line.run === looping.runId && line.step === 2,
    );
    const runs = (await bench.ledger()).filter((line) => line.pid === pid).map(({ run }) => run);
    const at = Date.now();
    victim.signal("SIGKILL");
    await eventually("the graph process has ended", () => !isAlive(pid));
    const childMs = Date.now() - at;
    const lost = await bench.untilAllEnded();
    const load = loadavg()[0] ?? Number.NaN;
    const ok = await endAsking();
    const { figure, complaints } = await judge({
      bench,
      witness: other,
      neighbours: [...neighbours, looping],
      deaths: [{ at, runs: [...new Set(runs)] }],
      lost,
      backWithinMs: TAKEN_OVER_P50_MS,
    });
    const child = `the graph process ended after ${seconds(childMs)}`;
    const found = {
      figure: `${child}; ${figure}`,
      complaints: [...complaints, ...complaintsWhere({ [child]: childMs > CHILD_ENDS_MS })],
    };
    return withOk(found, ok, load);
  },
});
