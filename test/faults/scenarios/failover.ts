import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../../helpers/conditions.ts";
import { startServerPair } from "../../helpers/server-pair.ts";
import { openBench } from "../bench.ts";
import type { Finding, Scenario } from "../scenario.ts";
import { startRuns } from "./cluster.ts";

const CALM_MS = 4_000;

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

/** 32: DATABASE_URLS names both. */
export const failedPrimary = ({ failures }: { failures: number }): Scenario => ({
  number: 32,
  title: "the primary dies, and its standby takes over (DATABASE_URLS)",
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
