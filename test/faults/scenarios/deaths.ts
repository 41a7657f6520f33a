import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../../helpers/conditions.ts";
import { endLeases } from "../../helpers/leases.ts";
import {
  aLedgerRun,
  faultsOf,
  FAULTY_SERVER,
  percentile,
  seconds,
  type LedgerRun,
  type Replica,
} from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const RECOVERY_P50_MS = 8_000;
const RECOVERY_MAX_MS = 12_000;

export const killedWorkers = ({
  kills,
  atATime,
  isTimed,
}: {
  kills: number;
  atATime: number;
  /** Whether the duration is checked, on an otherwise idle machine. */
  isTimed: boolean;
}): Scenario => ({
  number: 1,
  title: "kill -9 of a worker in the middle of a step",
  criterion: "every run ends; no write of a fenced attempt; back at work after p50 <= 8 s, max <= 12 s",
  scaled: `${kills} kills instead of 50, ${atATime} at a time, with MAX_ATTEMPTS=10`,
  async run({ bench }) {
    // Some runs go to the next victim several times.
    const environment = { MAX_ATTEMPTS: "10" };
    const replicas = [await bench.start({ environment })];
    const runs: LedgerRun[] = [];
    const recoveries: number[] = [];
    const startVictims = async (): Promise<Replica[]> => {
      const started = await Promise.all(Array.from({ length: atATime }, () => bench.start({ environment })));
      replicas.push(...started);
      return started;
    };
    let victims = await startVictims();
    for (let killed = 0; killed < kills; killed += victims.length) {
      const struck = await Promise.all(
        victims.map(async (victim) => {
          // However late the kill comes, the run is still running.
          const untilKilled = { harm: "deaf", harmAt: 4, harmAttempts: 1 } as const;
          const run = await aLedgerRun(victim, { steps: 8, milliseconds: 400, ...untilKilled });
          runs.push(run);
          const { pid } = await bench.untilNoted(
            "its second step",
            (line) => line.run === run.runId && line.step === 2,
          );
          return { victim, run, pid };
        }),
      );
      const next = killed + victims.length < kills ? startVictims() : Promise.resolve(victims);
      await Promise.all(
        struck.map(async ({ victim, run, pid }) => {
          // A random moment within step or checkpoint.
          await pause(Math.random() * 400);
          // Sometimes another process than the requested one takes a run. The process with the run dies, the other one lives on.
          const executing = replicas.find((replica) => replica.pid === pid) ?? victim;
          executing.signal("SIGKILL");
          const killedAt = Date.now();
          const resumed = await bench.untilNoted(
            `run ${run.runId} goes on`,
            (line) => line.run === run.runId && line.attempt === 2,
          );
          recoveries.push(resumed.at - killedAt);
        }),
      );
      victims = await next;
    }
    const lost = await bench.untilAllEnded();
    const doubled = await bench.doubledWinners();
    // Each round starts as many processes as it kills at most.
    const survivor = replicas.find((replica) => replica.isAlive())!;
    const faults = await faultsOf(survivor.api, runs);
    const [p50, max] = [percentile(recoveries, 0.5), Math.max(...recoveries)];
    return {
      figure: `${recoveries.length} kills: p50 ${seconds(p50)}, max ${seconds(max)}; lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...faults,
        ...complaintsWhere({
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
          "the median is too high": isTimed && p50 > RECOVERY_P50_MS,
          "the maximum is too high": isTimed && max > RECOVERY_MAX_MS,
        }),
      ],
    };
  },
});

const POINTS = [
  "after-claim",
  "before-first-event",
  "between-checkpoint-and-event",
  "before-finish",
  "after-finish",
] as const;

/** 2: deaths between two related writes. */
export const namedPoints = (): Scenario => ({
  number: 2,
  title: "kill -9 at each named point of a run",
  criterion: "every run ends as success, with its steps once each, wherever its process died",
  async run({ bench }) {
    const runs: LedgerRun[] = [];
    const pending: Promise<unknown>[] = [];
    for (const point of POINTS) {
      const victim = await bench.start({
        entry: FAULTY_SERVER,
        environment: {
          FAULT_POINT: point,
          FAULT_ARRIVAL: point === "between-checkpoint-and-event" ? "3" : "1",
        },
      });
      const threadId = await victim.api.aThread();
      // At the first points the process dies before it can answer.
      await victim.api
        .aRun(threadId, {
          assistant_id: "ledger",
          input: { steps: 3, milliseconds: 50 },
          durability: "sync",
          stream_resumable: true,
        })
        .catch(() => undefined);
      pending.push(victim.process.exit());
      runs.push({ threadId, runId: "", steps: 3 });
      await victim.process.exit();
    }
    const survivor = await bench.start();
    await Promise.all(pending);
    const lost = await bench.untilAllEnded();
    for (const run of runs) run.runId = (await survivor.api.runs(run.threadId))[0]?.run_id ?? "";
    const doubled = await bench.doubledWinners();
    const faults = await faultsOf(survivor.api, runs);
    return {
      figure: `${POINTS.length} points: ${runs.length - faults.length} runs well; lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...faults,
        ...complaintsWhere({ "a run was lost": lost > 0, "two attempts wrote": doubled > 0 }),
      ],
    };
  },
});

export interface StoppedOptions {
  environment: Record<string, string>;
  /** Left out: until the other process has ended the run, with the lease ended by the test. */
  stoppedMs?: number;
}

/** 3: a process that sleeps longer than its lease and then continues. */
export const stoppedWorker = ({ environment, stoppedMs }: StoppedOptions): Scenario => ({
  number: 3,
  title: "SIGSTOP longer than the lease, then SIGCONT",
  criterion:
    "nothing of the old attempt is accepted; the process goes on; its waiting client gets the right answer",
  async run({ bench }) {
    const [asked, another] = await Promise.all([bench.start({ environment }), bench.start({ environment })]);
    const run = await aLedgerRun(asked, {
      ...{ steps: 6, milliseconds: 300 },
      ...{ harm: "stop", harmAt: 3, harmAttempts: 1 },
    });
    const waited = asked.api.join(run.threadId, run.runId);
    const { pid } = await bench.untilNoted(
      "its third step",
      (line) => line.run === run.runId && line.step === 3,
    );
    // Rarely another process than the requested one takes a run.
    const [sleeper, other] = pid === another.pid ? [another, asked] : [asked, another];
    if (stoppedMs === undefined) await endLeases(bench);
    else await pause(stoppedMs);
    await other.api.untilRunIs(run.threadId, run.runId, "success");
    sleeper.signal("SIGCONT");
    const answer = await waited;
    // The old attempt's step ends now, unless the process noticed its end before.
    const after = await sleeper.api.aFinishedRun(await sleeper.api.aThread(), {
      assistant_id: "two-step",
      input: { messages: [] },
    });
    const doubled = await bench.doubledWinners();
    const faults = await faultsOf(other.api, [run]);
    const attempts = new Set(
      (await bench.ledger()).filter((line) => line.run === run.runId).map((l) => l.attempt),
    );
    return {
      figure: `stopped for ${seconds(stoppedMs ?? 0)}; ${attempts.size} attempts; doubled ${doubled}`,
      complaints: [
        ...faults,
        ...complaintsWhere({
          "two attempts wrote": doubled > 0,
          "the run was not taken over": attempts.size !== 2,
          [`the waiting client got ${JSON.stringify(answer)}`]:
            JSON.stringify(answer["done"]) !== "[1,2,3,4,5,6]",
          [`the process is of no use afterwards: ${JSON.stringify(after)}`]: after.__error__ !== undefined,
          "the process died": !sleeper.isAlive(),
        }),
      ],
    };
  },
});

/** 9: a run that kills its process in each attempt. */
export const lethalRun = (): Scenario => ({
  number: 9,
  title: "a run that kills its process each time",
  criterion: "ended as error after 3 attempts, with a sentence that says so; its neighbours end as success",
  async run({ bench }) {
    // A supervisor: it restarts each dead process.
    let closed = false;
    const replicas: Replica[] = [];
    let deaths = 0;
    const supervise = async (slot: number): Promise<void> => {
      while (!closed) {
        const replica = await bench.start().catch(() => undefined); // killed before it listened
        if (replica === undefined) continue;
        replicas[slot] = replica;
        // A starting process is stopped with the others at the end, or is stopped here.
        if (closed) await bench.stop(replica);
        await replica.process.exit();
        if (!closed) deaths += 1;
      }
    };
    const supervisors = [supervise(0), supervise(1)];
    await eventually("two replicas", () => replicas.filter((one) => one?.url).length === 2, 60_000);
    const alive = (): Replica => replicas.find((one) => one.isAlive() && one.url !== "") as Replica;
    const neighbours: LedgerRun[] = [];
    const host = alive();
    for (let count = 0; count < 20; count += 1) {
      neighbours.push(await aLedgerRun(host, { steps: 12, milliseconds: 1_000 }));
    }
    const threadId = await host.api.aThread();
    const lethal = await host.api.aRun(threadId, { assistant_id: "lethal", input: { messages: [] } });
    const lost = await bench.untilAllEnded(240_000);
    const survivor = await eventually("a replica", () => alive(), 30_000);
    const ended = await survivor.api.run(threadId, lethal.run_id);
    const { error } = await survivor.api.thread(threadId);
    const faults = await faultsOf(survivor.api, neighbours);
    closed = true;
    await Promise.all(replicas.map((replica) => bench.stop(replica)));
    await Promise.all(supervisors);
    return {
      figure: `${deaths} processes died; the run: ${ended.status}; neighbours well: ${neighbours.length - faults.length} of ${neighbours.length}; lost ${lost}`,
      complaints: [
        ...faults,
        ...complaintsWhere({
          "a run was lost": lost > 0,
          [`the run is ${ended.status}`]: ended.status !== "error",
          [`its error is ${error?.message}`]: !/3 attempts/.test(error?.message ?? ""),
        }),
      ],
    };
  },
});
