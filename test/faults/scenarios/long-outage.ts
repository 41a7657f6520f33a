import { setTimeout as pause } from "node:timers/promises";
import { openStream, readStream, type SentEvent } from "../../helpers/server-sent-events.ts";
import { aLedgerRun, faultsOf, seconds, type Bench, type LedgerRun, type Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

/** Each stored checkpoint notes whether the log has the events of its step at that moment. */
const WATCH = `
create table public.noted (run_id uuid, step int, is_logged boolean);
create function public.note() returns trigger language plpgsql as $$
begin
  insert into public.noted
    select new.run_id, step, step < 1 or exists (
      select from threadloom.run_events e
      where e.thread_id = new.thread_id and e.run_id = new.run_id and e.event = 'updates'
        and e.data like '%"done":[' || step || ']%')
    from (select (new.metadata->>'step')::int as step) as made;
  return null;
end $$;
create trigger note after insert on threadloom.checkpoints for each row execute function public.note()`;

const PAUSE_MS = 250;

/** Reads like a client that reconnects after each cut and each refusal, until the clean end of the run. */
const follow = async ({ url }: Replica, { threadId, runId }: LedgerRun): Promise<SentEvent[]> => {
  const read: SentEvent[] = [];
  for (;;) {
    try {
      const stream = await openStream(`${url}/threads/${threadId}/runs/${runId}/stream`, {
        headers: { "last-event-id": String(read.at(-1)?.id ?? -1) },
      });
      for (;;) {
        const event = await stream.next();
        if (event === undefined) return read;
        read.push(event);
      }
    } catch {
      await pause(PAUSE_MS);
    }
  }
};

/** The same run as a late reader of its thread sees it, without the event of its end. */
const readThread = async ({ url }: Replica, { threadId }: LedgerRun): Promise<SentEvent[]> => {
  const stream = await openStream(`${url}/threads/${threadId}/stream`, {
    headers: { "last-event-id": "-1" },
  });
  await stream.until(({ data }) => (data as { status?: string }).status === "run_done");
  stream.close();
  return stream.seen.slice(0, -1);
};

const isRising = (events: readonly SentEvent[]): boolean =>
  events.every(({ id = -1 }, index) => index === 0 || id > (events[index - 1]?.id ?? -1));

const doneIn = ({ data }: SentEvent): number =>
  (data as { step?: { done?: number[] } }).step?.done?.[0] ?? Number.NaN;

/** What is wrong with the events of a run, as they are replayed and as a client has received them. */
const eventFaults = async (
  bench: Bench,
  replica: Replica,
  run: LedgerRun,
  received: readonly SentEvent[],
): Promise<string[]> => {
  const { threadId, runId, steps } = run;
  const log = await bench.query<{ seq: number; event: string; data: string }>(
    "select seq::integer as seq, event, data from threadloom.run_events where run_id = $1 order by seq",
    [runId],
  );
  const replayed = await readStream(`${replica.url}/threads/${threadId}/runs/${runId}/stream`, {
    headers: { "last-event-id": "-1" },
  });
  const ofThread = await readThread(replica, run);
  const contentsOf = (events: readonly SentEvent[]): string =>
    JSON.stringify(events.map(({ event, data }) => [event, data]));
  const kept = JSON.stringify(log.map(({ seq, event, data }) => [seq, event, JSON.parse(data)]));
  const textOf = (events: readonly SentEvent[]): string =>
    JSON.stringify(events.map(({ id, event, data }) => [id, event, data]));
  const done = replayed.filter(({ event }) => event === "updates").map(doneIn);
  const first = JSON.stringify([...new Set(done)]);
  const wanted = JSON.stringify(Array.from({ length: steps }, (_, index) => index + 1));
  return complaintsWhere({
    [`the replay of run ${runId} differs from the log`]: textOf(replayed) !== kept,
    [`the ids of run ${runId} do not rise`]: !isRising(replayed) || !isRising(ofThread),
    [`readers of the thread of run ${runId} see something else`]:
      contentsOf(ofThread) !== contentsOf(replayed),
    [`a client of run ${runId} received something else than the log has`]: textOf(received) !== kept,
    [`the events of run ${runId} show the steps ${first}`]: first !== wanted,
  });
};

export interface LongOutageOptions {
  awayMs: number;
  runsEach: number;
}

/** 35: Postgres is away for longer than any statement is retried, while steps end. */
export const longOutage = ({ awayMs, runsEach }: LongOutageOptions): Scenario => ({
  number: 35,
  title: `Postgres stopped hard for ${awayMs / 1000} s while steps of resumable runs end (durability sync and async, with and without --workers)`,
  criterion: "every run ends; every checkpoint has the events of its step in the log; replays equal the log",
  async run({ bench, database }) {
    if (database === undefined) throw new Error("This needs a Postgres that may be stopped.");
    const replicas = (await Promise.all([bench.start(), bench.start({ environment: { WORKERS: "2" } })])) as [
      Replica,
      Replica,
    ];
    await bench.query(WATCH);
    const runs: { run: LedgerRun; replica: Replica }[] = [];
    for (const replica of replicas) {
      for (const durability of ["sync", "async"]) {
        for (let count = 0; count < runsEach; count += 1) {
          // Their steps end at different moments; asynchronous runs of the shortest steps end while Postgres is away.
          const milliseconds = 500 + 700 * count;
          const asked = { steps: 15, milliseconds, durability, stream_mode: ["updates", "custom"] };
          runs.push({ run: await aLedgerRun(replica, { ...asked, stream_resumable: true }), replica });
        }
      }
    }
    const following = runs.map(({ run, replica }) => follow(replica, run));
    await pause(3_000);
    await database.stopHard();
    const stoppedAt = Date.now();
    await pause(awayMs);
    await database.start();
    const awayForMs = Date.now() - stoppedAt;
    const lost = await bench.untilAllEnded();
    const received = lost === 0 ? await Promise.all(following) : [];
    const doubled = await bench.doubledWinners();
    const faults = await faultsOf(
      replicas[0].api,
      runs.map(({ run }) => run),
    );
    for (const [index, { run, replica }] of runs.entries())
      faults.push(...(await eventFaults(bench, replica, run, received[index] ?? [])));
    const [noted] = await bench.query<{ checkpoints: number; unlogged: number }>(
      `select count(*)::int as checkpoints, count(*) filter (where not is_logged)::int as unlogged from public.noted
       where run_id is not null`,
    );
    const [attempts] = await bench.query<{ most: number; lost: number }>(
      "select max(attempt) as most, sum(lost_attempts)::int as lost from threadloom.runs",
    );
    const events = received.reduce((sum, { length }) => sum + length, 0);
    return {
      figure: `away for ${seconds(awayForMs)}; ${runs.length} runs, ${attempts?.most} attempts at most (${attempts?.lost} lost); ${noted?.checkpoints} checkpoints, ${noted?.unlogged} without events; ${events} events read; lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...faults,
        ...complaintsWhere({
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
          "a checkpoint was stored without the events of its step": noted?.unlogged !== 0,
          "no checkpoint was stored": (noted?.checkpoints ?? 0) === 0,
          "a process died": replicas.some((replica) => !replica.isAlive()),
        }),
      ],
    };
  },
});
