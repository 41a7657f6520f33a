import { aLedgerRun, faultsOf, seconds, type Bench, type LedgerRun, type Replica } from "../bench.ts";
import { complaintsWhere, type Finding, type Scenario } from "../scenario.ts";

/** A small bound: a process whose loop is blocked for 3 s keeps its runs for 3 s of lease after that. */
const SMALL_BOUND = {
  BLOCKED_LOOP_SECONDS: "3",
  LEASE_SECONDS: "3",
};
/** The maximum time until a takeover: bound, a heartbeat, lease, sweep; and a second for the machine. */
const TAKEN_OVER_WITHIN_MS = 8_000;
const BLOCKED_BEYOND_MS = 15_000;
const NEIGHBOURS = 3;

const attemptsOf = async (bench: Bench, runIds: readonly string[]): Promise<number[]> => {
  const rows = await bench.query<{ attempt: number }>(
    "select attempt from threadloom.runs where run_id = any($1::uuid[]) order by attempt",
    [runIds],
  );
  return rows.map(({ attempt }) => attempt);
};

/** Starts runs with steps on the process, and then one that blocks it and may prevent the answer. */
const startRuns = async (
  bench: Bench,
  replica: Replica,
  input: { milliseconds: number; attempts?: number },
) => {
  const neighbours: LedgerRun[] = [];
  for (let count = 0; count < NEIGHBOURS; count += 1) {
    neighbours.push(await aLedgerRun(replica, { steps: 4, milliseconds: 500 }));
  }
  for (const { runId } of neighbours) {
    await bench.untilNoted("a neighbour's first step", (line) => line.run === runId);
  }
  const threadId = await replica.api.aThread();
  const startedAt = Date.now();
  const created = replica.api.aRun(threadId, { assistant_id: "blocking", input: { messages: [], ...input } });
  created.catch(() => undefined);
  return { neighbours, threadId, startedAt, created, runIds: neighbours.map(({ runId }) => runId) };
};

/** Longer than a lease, but within the bound: no process takes over. */
const withinTheBound = async (bench: Bench, blockedMs: number): Promise<Finding> => {
  const [blocked, other] = await Promise.all([bench.start(), bench.start()]);
  const { neighbours, threadId, created, runIds, startedAt } = await startRuns(bench, blocked, {
    milliseconds: blockedMs,
  });
  const { run_id } = await created;
  const lost = await bench.untilAllEnded(blockedMs + 60_000);
  const tookMs = Date.now() - startedAt;
  const ended = await other.api.run(threadId, run_id);
  const { values } = await other.api.state(threadId);
  const attempts = await attemptsOf(bench, [run_id]);
  const attemptsBeside = await attemptsOf(bench, runIds);
  const faults = await faultsOf(other.api, neighbours);
  await Promise.all([bench.stop(blocked), bench.stop(other)]);
  const messages = values.messages?.length ?? 0;
  return {
    figure: `blocked for ${seconds(blockedMs)}: ${ended.status} in attempt ${attempts.join()}, neighbours in ${attemptsBeside.join()}`,
    complaints: [
      ...faults,
      ...complaintsWhere({
        "a run was lost": lost > 0,
        [`the run is ${ended.status} in attempt ${attempts.join()} with ${messages} messages`]:
          ended.status !== "success" || attempts[0] !== 1 || messages !== 1,
        [`the neighbours are in attempts ${attemptsBeside.join()}`]: attemptsBeside.some((one) => one !== 1),
        [`the loop was blocked for less than ${blockedMs} ms`]: tookMs < blockedMs,
      }),
    ],
  };
};

/** Beyond the bound: another process takes over all runs of the blocked one, whose later writes are refused. */
const beyondTheBound = async (bench: Bench): Promise<Finding> => {
  const start = () => bench.start({ environment: SMALL_BOUND });
  const [blocked, other] = await Promise.all([start(), start()]);
  const { neighbours, threadId, startedAt, runIds } = await startRuns(bench, blocked, {
    milliseconds: BLOCKED_BEYOND_MS,
    attempts: 1,
  });
  const lost = await bench.untilAllEnded(BLOCKED_BEYOND_MS - 1_000);
  const takenOver = (await bench.ledger()).filter(
    ({ run, attempt }) => runIds.includes(run) && attempt === 2,
  );
  const tookMs = Math.min(...takenOver.map(({ at }) => at)) - startedAt;
  const untilEndedMs = Date.now() - startedAt;
  const [{ run_id } = { run_id: "" }] = await other.api.runs(threadId);
  const end = await blocked.process.exit();
  const ended = await other.api.run(threadId, run_id);
  const { values } = await other.api.state(threadId);
  const attempts = await attemptsOf(bench, [run_id, ...runIds]);
  const said = JSON.stringify(values.messages?.map(({ content }) => content));
  const faults = await faultsOf(other.api, neighbours);
  await bench.stop(other);
  return {
    figure: `with BLOCKED_LOOP_SECONDS=3: taken over after ${seconds(tookMs)}, ${ended.status} in attempts ${attempts.join()}; the blocked process: ${end}`,
    complaints: [
      ...faults,
      ...complaintsWhere({
        "a run was lost": lost > 0,
        [`the runs ended after ${untilEndedMs} ms, when the loop was free again`]:
          untilEndedMs >= BLOCKED_BEYOND_MS,
        [`they were taken over after ${tookMs} ms`]: !(tookMs <= TAKEN_OVER_WITHIN_MS),
        [`the run is ${ended.status} and says ${said}`]: said !== '["blocked in attempt 2"]',
        [`the attempts are ${attempts.join()}`]: attempts.some((one) => one !== 2),
        [`the blocked process ended with ${end}`]: end !== "SIGKILL",
      }),
    ],
  };
};

/** 10: a node that prevents the heartbeat of its process. */
export const blockedLoop = ({ blockedMs }: { blockedMs: number }): Scenario => ({
  number: 10,
  title: "a node that blocks the event loop longer than the lease",
  criterion:
    "two processes: success in attempt 1, neighbours, too; beyond BLOCKED_LOOP_SECONDS the process ends itself and another takes all of it: never two winners",
  async run({ bench }) {
    const within = await withinTheBound(bench, blockedMs);
    const beyond = await beyondTheBound(bench);
    const doubled = await bench.doubledWinners();
    return {
      figure: `${within.figure}; ${beyond.figure}; doubled ${doubled}`,
      complaints: [
        ...within.complaints,
        ...beyond.complaints,
        ...complaintsWhere({ "two attempts wrote": doubled > 0 }),
      ],
    };
  },
});
