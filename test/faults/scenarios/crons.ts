import { setTimeout as pause } from "node:timers/promises";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import { eventually } from "../../helpers/conditions.ts";
import { FAULTY_SERVER, type Bench, type Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const LATE_P99_MS = 1_000;
const POLL_EVERY_MS = 10;
/** A full second, because a `Date` has milliseconds. Both processes poll once more before it. */
const AHEAD_SECONDS = 3;

/** `count` crons that are due together, half of them on a thread each. */
const makeCrons = async ({ api }: Replica, { query }: Bench, count: number): Promise<void> => {
  const { body } = await api.post<CronRecord>("/runs/crons", {
    assistant_id: "two-step",
    schedule: "0 0 1 1 *",
    input: { messages: [] },
    on_run_completed: "keep",
  });
  await query(
    `with made as (
       insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, $2::int) returning thread_id)
     insert into threadloom.crons (cron_id, assistant_id, thread_id, schedule, on_run_completed, payload, next_run_date)
     select gen_random_uuid(), c.assistant_id, t.thread_id, c.schedule, case when t.thread_id is null then 'keep' end, c.payload,
       c.next_run_date
     from threadloom.crons c, (select thread_id from made union all select null from generate_series(1, $2::int)) t
     where c.cron_id = $1`,
    [body.cron_id, count / 2],
  );
  await api.remove(`/runs/crons/${body.cron_id}`);
};

/** The first runs of a process block its loop for some 500 ms in all; this scenario does not test starts. */
const warmUp = async ({ api }: Replica): Promise<void> => {
  const run = { assistant_id: "two-step", input: { messages: [] } };
  await Promise.all(Array.from({ length: 20 }, () => api.post("/runs/wait", run)));
};

interface Round {
  /** Crons whose number of runs is not one. */
  notOnce: number;
  /** The time after the due time when this share of the runs existed. */
  p99Ms: number;
  lastMs: number;
}

/** One due time of all crons, at which a process dies at `point`. */
const fireAll = async (bench: Bench, point: string): Promise<Round> => {
  const victim = await bench.start({
    entry: FAULTY_SERVER,
    environment: { FAULT_POINT: point, FAULT_ARRIVAL: "1" },
  });
  await warmUp(victim);
  const [{ crons, due } = { crons: 0, due: new Date() }] = await bench.query<{ crons: number; due: Date }>(
    `with changed as (update threadloom.crons set next_run_date = date_trunc('second', now()) + $1 * interval '1 second' returning next_run_date)
     select count(*)::int as crons, max(next_run_date) as due from changed`,
    [AHEAD_SECONDS],
  );
  const seen: { at: number; runs: number }[] = [];
  await eventually(
    "every cron is fired",
    async () => {
      const [row] = await bench.query<{ at: Date; runs: number; open: number }>(
        `select clock_timestamp() as at,
           (select count(*)::int from threadloom.runs where created_at >= $1) as runs,
           (select count(*)::int from threadloom.crons where next_run_date <= $1) as open`,
        [due],
      );
      if (row === undefined) return false;
      seen.push({ at: row.at.getTime() - due.getTime(), runs: row.runs });
      await pause(POLL_EVERY_MS);
      return row.open === 0;
    },
    30_000,
  );
  await victim.process.exit();
  const runs = await bench.query<{ cron: string; runs: number }>(
    `select metadata ->> 'cron_id' as cron, count(*)::int as runs from threadloom.runs where created_at >= $1 group by 1`,
    [due],
  );
  const runsOf = new Map(runs.map((row) => [row.cron, row.runs]));
  const all = await bench.query<{ cron_id: string }>("select cron_id from threadloom.crons");
  const wrong = all.filter((cron) => runsOf.get(cron.cron_id) !== 1).length;
  const when = (share: number): number =>
    seen.find(({ runs }) => runs >= crons * share)?.at ?? Number.POSITIVE_INFINITY;
  return { notOnce: wrong, p99Ms: when(0.99), lastMs: when(1) };
};

/** 23: crons that are due together, and a process that dies while it fires some of them. */
export const killedScheduler = ({ crons }: { crons: number }): Scenario => ({
  number: 23,
  title: `${crons} crons due together, and kill -9 of one of two servers that fire them`,
  criterion: "each is fired once; p99 of lateness < 1 s; every run ends as success",
  async run({ bench }) {
    const survivor = await bench.start();
    await warmUp(survivor);
    await makeCrons(survivor, bench, crons);
    const before = await fireAll(bench, "before-firing");
    const lost = await bench.untilAllEnded();
    const after = await fireAll(bench, "after-firing");
    const lostAfter = await bench.untilAllEnded();
    const [{ failed } = { failed: -1 }] = await bench.query<{ failed: number }>(
      "select count(*)::int as failed from threadloom.runs where status <> 'success'",
    );
    const said = ({ notOnce, p99Ms, lastMs }: Round): string =>
      `p99 ${p99Ms} ms, the last ${lastMs} ms; not once ${notOnce}`;
    return {
      figure: `killed before the commit: ${said(before)}; after it: ${said(after)}; lost ${lost + lostAfter}; failed ${failed}`,
      complaints: complaintsWhere({
        "a cron was not fired, or twice": before.notOnce + after.notOnce > 0,
        "p99 of the lateness is too high": Math.max(before.p99Ms, after.p99Ms) >= LATE_P99_MS,
        "a run was lost": lost + lostAfter > 0,
        "a run failed": failed > 0,
      }),
    };
  },
});
