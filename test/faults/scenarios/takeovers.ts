import { setTimeout as pause } from "node:timers/promises";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import type { MultitaskStrategy } from "../../../src/platform/database/tables.ts";
import type { Bench, Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const STRATEGIES: readonly MultitaskStrategy[] = ["reject", "enqueue", "interrupt", "rollback"];
/** Short leases, so that a round takes some ten seconds. */
const SOON = { LEASE_SECONDS: "3", MAX_ATTEMPTS: "10" };
/** Before the run of a killed process, or of one that hands it back after a second, waits in the queue. */
const DUE_SECONDS = 1.2;
const STEPS = { first: 7, late: 2, cron: 2, newer: 2 };
const STEP_MS = 500;
/** In steps and between them; while the process ends, and after it. */
const ANY_MOMENT_MS = { ofDeath: 500, ofRequest: 2_500 };

interface Turn {
  threadId: string;
  strategy: MultitaskStrategy;
  first: string;
}

const input = (label: keyof typeof STEPS, milliseconds = 20) => ({
  assistant_id: "turns",
  input: { label, steps: STEPS[label], milliseconds },
  durability: "sync",
});

/** On one thread: a delayed run, which is older than the run in progress, and a cron. Both come due before the takeover. */
const aTurn = async ({ api }: Replica, { query }: Bench, strategy: MultitaskStrategy): Promise<Turn> => {
  const threadId = await api.aThread();
  const { body: cron } = await api.post<CronRecord>(`/threads/${threadId}/runs/crons`, {
    ...input("cron"),
    schedule: "0 0 1 1 *",
  });
  await api.aRun(threadId, { ...input("late"), after_seconds: DUE_SECONDS });
  const first = await api.aRun(threadId, input("first", STEP_MS));
  await query(
    "update threadloom.crons set next_run_date = now() + make_interval(secs => $2) where cron_id = $1",
    [cron.cron_id, DUE_SECONDS],
  );
  return { threadId, strategy, first: first.run_id };
};

/** Contradictions between the statuses of a thread's runs and its state. */
const faultsOfThread = async (
  { api }: Replica,
  threadId: string,
  runs: readonly RunRecord[],
): Promise<string[]> => {
  const { values } = await api.state(threadId);
  const items = (values["items"] ?? []) as string[];
  const labels = Object.keys(STEPS) as (keyof typeof STEPS)[];
  return labels.flatMap((label) => {
    const statuses = runs
      .filter(({ kwargs }) => (kwargs["input"] as { label: string }).label === label)
      .map(({ status }) => status);
    const places = items.flatMap((item, place) => (item.startsWith(`${label}:`) ? [place] : []));
    const isInOnePiece = places.every(
      (place, index) => place === (places[0] ?? 0) + index && items[place] === `${label}:${index + 1}`,
    );
    const isWhole =
      statuses.length === 0
        ? places.length === 0
        : statuses.every(
            (status) => status === "interrupted" || (status === "success" && places.length === STEPS[label]),
          );
    return isInOnePiece && isWhole ? [] : [`${label} (${statuses.join()}) left ${items.join()}`];
  });
};

/** 36: everything that may start between the loss of a run's process and the next attempt. */
export const takeovers = ({ rounds }: { rounds: number }): Scenario => ({
  number: 36,
  title: "kill -9 and SIGTERM, while delayed runs, crons and runs of every strategy come to the same threads",
  criterion: "a run that has begun is the next one of its thread; a success has all its steps, in one piece",
  async run({ bench }) {
    const survivor = await bench.start({ environment: SOON });
    const turns: Turn[] = [];
    const refused: number[] = [];
    let next = bench.start({ environment: SOON });
    for (let round = 0; round < rounds; round += 1) {
      const victim = await next;
      const mine = await Promise.all(STRATEGIES.map((strategy) => aTurn(victim, bench, strategy)));
      turns.push(...mine);
      await Promise.all(
        mine.map(({ first }) =>
          bench.untilNoted("its second step", ({ run, step }) => run === first && step === 2),
        ),
      );
      await pause(Math.random() * ANY_MOMENT_MS.ofDeath);
      victim.signal(round % 2 === 0 ? "SIGKILL" : "SIGTERM");
      if (round + 1 < rounds) next = bench.start({ environment: SOON });
      await Promise.all(
        mine.map(async ({ threadId, strategy }) => {
          await pause(Math.random() * ANY_MOMENT_MS.ofRequest);
          const answer = await survivor.api.post(`/threads/${threadId}/runs`, {
            ...input("newer"),
            multitask_strategy: strategy,
          });
          if (answer.status === 409) refused.push(answer.status);
          else if (answer.status !== 200) throw new Error(answer.text);
        }),
      );
      await bench.untilAllEnded();
    }
    const lost = await bench.untilAllEnded();
    const ledger = await bench.ledger();
    const continued = turns.filter(({ first }) =>
      ledger.some(({ run, attempt }) => run === first && attempt > 1),
    );
    const counts = new Map<string, number>();
    const faults: string[] = [];
    for (const { threadId } of turns) {
      const runs = await survivor.api.runs(threadId);
      for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
      faults.push(...(await faultsOfThread(survivor, threadId, runs)));
    }
    const doubled = await bench.doubledWinners();
    const ended = [...counts].map(([status, runs]) => `${runs} ${status}`).join(", ");
    return {
      figure: `${rounds} deaths and stops, ${turns.length} threads: ${continued.length} runs continued elsewhere; ${ended}, ${refused.length} refused; lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...faults,
        ...complaintsWhere({
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
          "no run was continued": continued.length === 0,
          "a run was not refused": refused.length !== rounds,
        }),
      ],
    };
  },
});
