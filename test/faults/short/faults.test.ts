import { afterEach, beforeEach, expect, test } from "vitest";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { PATIENT_LEASES_ENVIRONMENT } from "../../helpers/leases.ts";
import { openBench, type Bench } from "../bench.ts";
import type { Scenario } from "../scenario.ts";
import { terminatedBackends } from "../scenarios/database.ts";
import { killedWorkers, stoppedWorker } from "../scenarios/deaths.ts";
import { changedGraphs } from "../scenarios/deployments.ts";
import { killedSenders } from "../scenarios/webhooks.ts";
import { cutStreams, rollingRestart } from "../scenarios/replicas.ts";
import { takeovers } from "../scenarios/takeovers.ts";

/** The most important fault tests, on a small scale and without their time limits; `npm run test:faults` runs them all. */
const SCENARIOS: Scenario[] = [
  killedWorkers({ kills: 1, atATime: 1, isTimed: false }),
  stoppedWorker({ environment: PATIENT_LEASES_ENVIRONMENT }),
  terminatedBackends({ stormMs: 2_000 }),
  rollingRestart({ replicas: 2 }),
  cutStreams(),
  changedGraphs(),
  killedSenders({ runs: 2 }),
  takeovers({ rounds: 2 }),
];

let database: FreshDatabase;
let bench: Bench;

beforeEach(async () => {
  database = await freshDatabase();
  bench = await openBench(database.connectionString);
});
afterEach(async () => {
  await bench?.close();
  await database?.drop();
});

test.each(SCENARIOS)("fault $number, $title", async (scenario) => {
  expect((await scenario.run({ bench })).complaints).toEqual([]);
});
