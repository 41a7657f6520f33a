/**
 * `npm run test:faults [-- numbers]`: runs all fault tests in order with real processes and a Postgres of their own, and prints a table
 * of the results. Exits with 1 if a criterion was not met.
 */
import { removeLeftovers } from "../helpers/temporary-folder.ts";
import { openBench } from "./bench.ts";
import type { Finding, Scenario } from "./scenario.ts";
import { blockedLoop } from "./scenarios/blocked-loop.ts";
import { steppingClocks } from "./scenarios/clocks.ts";
import { killedScheduler } from "./scenarios/crons.ts";
import {
  halfOpenConnections,
  slowDatabase,
  stoppedDatabase,
  terminatedBackends,
} from "./scenarios/database.ts";
import { killedWorkers, lethalRun, namedPoints, stoppedWorker } from "./scenarios/deaths.ts";
import { failedPrimary } from "./scenarios/failover.ts";
import { deathsBeforeEnds } from "./scenarios/deaths-before-ends.ts";
import { idleStreams, slowReaders } from "./scenarios/readers.ts";
import { changedGraphs } from "./scenarios/deployments.ts";
import { harmfulRuns, killedGraphProcesses, killedMainProcess } from "./scenarios/graph-processes.ts";
import { longOutage } from "./scenarios/long-outage.ts";
import { movedValues } from "./scenarios/object-store.ts";
import { killedSenders } from "./scenarios/webhooks.ts";
import { cutStreams, manyClaimers, rollingRestart } from "./scenarios/replicas.ts";
import { strategiesAgainstModel } from "./scenarios/strategies.ts";
import { takeovers } from "./scenarios/takeovers.ts";
import { startTestDatabase, type TestDatabase } from "./test-database.ts";

const SCENARIOS: Scenario[] = [
  killedWorkers({ kills: 12, atATime: 2, isTimed: true }),
  namedPoints(),
  stoppedWorker({ environment: {}, stoppedMs: 14_000 }),
  terminatedBackends({ calmMs: 4_000, stormMs: 10_000 }),
  stoppedDatabase(),
  halfOpenConnections(),
  slowDatabase(),
  rollingRestart({ replicas: 3 }),
  lethalRun(),
  blockedLoop({ blockedMs: 15_000 }),
  manyClaimers({ claimers: 50, runs: 2_000 }),
  strategiesAgainstModel(),
  cutStreams(),
  slowReaders({ readers: 50, tokens: 20_000 }),
  idleStreams({ streams: 1_000 }),
  changedGraphs(),
  harmfulRuns({
    number: 17,
    title: "a graph that loops for ever (BLOCKED_LOOP_SECONDS=3)",
    harm: "loop",
    rounds: 1,
    environment: {
      BLOCKED_LOOP_SECONDS: "3",
      LEASE_SECONDS: "3",
    },
  }),
  harmfulRuns({
    number: 18,
    title: "a graph that fills the memory of its process (WORKER_HEAP_MB=128)",
    harm: "memory",
    rounds: 2,
    environment: { WORKER_HEAP_MB: "128" },
  }),
  harmfulRuns({ number: 19, title: "a graph that calls process.exit", harm: "exit", rounds: 2 }),
  harmfulRuns({ number: 20, title: "a graph that throws from a timer", harm: "throw", rounds: 2 }),
  killedGraphProcesses({ number: 21, kills: 6 }),
  killedMainProcess({ number: 22 }),
  killedScheduler({ crons: 1_000 }),
  killedSenders({ runs: 6 }),
  steppingClocks({ threads: 9, turns: 6 }),
  deathsBeforeEnds(),
  movedValues({ rounds: 9 }),
  failedPrimary({ failures: 3 }),
  longOutage({ awayMs: 41_000, runsEach: 3 }),
  takeovers({ rounds: 6 }),
];

/** Log lines of the servers that are shown with a failed criterion. */
const ERRORS_SHOWN = 3;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Shows the running scenario and its duration. */
const examine = async (scenario: Scenario, database: TestDatabase) => {
  const startedAt = Date.now();
  const bench = await openBench(await database.create(`faults_${scenario.number}_${startedAt}`));
  let finding: Finding;
  try {
    finding = await scenario.run({ bench, database });
  } catch (error) {
    finding = {
      figure: "",
      complaints: [`it broke off: ${error instanceof Error ? error.stack : String(error)}`],
    };
  } finally {
    await bench.close();
  }
  if (finding.complaints.length > 0) finding.complaints.push(...bench.errors().slice(0, ERRORS_SHOWN));
  const took = Math.round((Date.now() - startedAt) / 1000);
  const { skipped } = finding;
  const what = skipped === undefined ? finding.figure : `skipped: ${skipped}`;
  say(`${scenario.number}. ${scenario.title} (${took} s): ${what}`);
  for (const complaint of finding.complaints) say(`   ! ${complaint}`);
  return { scenario, finding, took };
};

const wanted = process.argv.slice(2).map(Number);
await removeLeftovers();
const database = await startTestDatabase();
const startedAt = Date.now();
const results: Awaited<ReturnType<typeof examine>>[] = [];
try {
  for (const scenario of SCENARIOS) {
    if (wanted.length === 0 || wanted.includes(scenario.number))
      results.push(await examine(scenario, database));
  }
} finally {
  await database.close();
}
say(`\n| # | fault | criterion | figure | verdict |\n|---|---|---|---|---|`);
for (const { scenario, finding } of results) {
  const title = scenario.scaled === undefined ? scenario.title : `${scenario.title} (${scenario.scaled})`;
  const kept = finding.complaints.length === 0 ? "met" : "**not met**";
  const verdict = finding.skipped === undefined ? kept : `skipped: ${finding.skipped}`;
  say(`| ${scenario.number} | ${title} | ${scenario.criterion} | ${finding.figure} | ${verdict} |`);
}
say(`\n${Math.round((Date.now() - startedAt) / 1000)} s in all.`);
process.exit(results.some(({ finding }) => finding.complaints.length > 0) ? 1 : 0);
