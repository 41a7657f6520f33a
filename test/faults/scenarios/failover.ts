import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../../helpers/conditions.ts";
import { startServerPair } from "../../helpers/server-pair.ts";
import { aLedgerRun, faultsOf, openBench, type Bench, type LedgerRun, type Replica } from "../bench.ts";
import { complaintsWhere, type Finding, type Scenario } from "../scenario.ts";

const STEPS = 8;
const STEP_MS = 300;
const CALM_MS = 4_000;

/** Creates runs at two servers until it is ended. A refused request is counted. */
const startRuns = async (bench: Bench) => {
  const replicas = (await Promise.all([bench.start(), bench.start()])) as [Replica, Replica];
  const runs: LedgerRun[] = [];
  let isOver = false;
  let refused = 0;
  const others = new Set<string>();
  const create = async (replica: Replica): Promise<void> => {
    while (!isOver) {
      try {
        runs.push(await aLedgerRun(replica, { steps: STEPS, milliseconds: STEP_MS, durability: "async" }));
      } catch (error) {
        refused += 1;
        const text = String(error);
        if (!text.includes("503")) others.add(text.slice(0, 200));
      }
      await pause(200);
    }
  };
  const creating = replicas.map(create);
  return {
    runs,
    /** After the last fault: every acknowledged run has to end as success, with its steps once each. */
    async end() {
      isOver = true;
      await Promise.all(creating);
      const lost = await bench.untilAllEnded();
      const doubled = await bench.doubledWinners();
      const faults = await faultsOf(replicas[0].api, runs);
      const [{ attempts } = { attempts: 0 }] = await bench.query<{ attempts: number }>(
        "select max(attempt) as attempts from threadloom.runs",
      );
      return {
        figure: `${runs.length} runs, ${refused} requests refused; at most ${attempts} attempts; lost ${lost}; doubled ${doubled}`,
        complaints: [
          ...faults,
          ...[...others].map((text) => `a request was refused with ${text}`),
          ...complaintsWhere({
            "a run was lost": lost > 0,
            "two attempts wrote": doubled > 0,
            "a process died": replicas.some((replica) => !replica.isAlive()),
          }),
        ],
      };
    },
  };
};

/** A new pair each time, because an old primary can't follow the new one without pg_rewind. */
const failOver = async (): Promise<Finding> => {
  const pair = await startServerPair();
  try {
    const bench = await openBench(await pair.create("app"));
    try {
      const load = await startRuns(bench);
      await pause(CALM_MS);
      await pair.failOver();
      await pause(CALM_MS);
      await eventually("the bench reaches the new primary", () =>
        bench.query("select").catch(() => undefined),
      );
      return await load.end();
    } finally {
      await bench.close();
    }
  } finally {
    await pair.close();
  }
};

/** 32: one address leads to the primary. */
export const failedPrimary = ({ failures }: { failures: number }): Scenario => ({
  number: 32,
  title: "the primary dies, and its standby takes over behind one address",
  criterion: "no acknowledged run is lost or fails; the servers go on",
  scaled: `${failures} times`,
  async run() {
    const findings: Finding[] = [];
    for (let failure = 0; failure < failures; failure += 1) findings.push(await failOver());
    return {
      figure: findings.map(({ figure }) => figure).join("; "),
      complaints: findings.flatMap(({ complaints }) => complaints),
    };
  },
});
