import { faultsOf, FAULTY_SERVER, type LedgerRun } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const DURABILITIES = ["sync", "async", "exit"] as const;
const STEPS = 3;
const TRIES = 10;
const SOON = { LEASE_SECONDS: "3" };

/** 26: deaths between the last checkpoint and the end of a run. */
export const deathsBeforeEnds = (): Scenario => ({
  number: 26,
  title: "kill -9 between the last checkpoint and the end of a run, for each durability",
  criterion: "success with its steps once each; no checkpoint is its own parent",
  async run({ bench }) {
    const runs: LedgerRun[] = [];
    const survivor = await bench.start({ environment: SOON });
    for (const durability of DURABILITIES) {
      const victim = await bench.start({
        entry: FAULTY_SERVER,
        environment: { ...SOON, FAULT_POINT: "before-finish" },
      });
      const { child } = victim.process;
      // Rarely the survivor takes a run, and the victim lives on.
      for (let tries = 0; child.signalCode === null; tries += 1) {
        if (tries === TRIES) throw new Error("The victim does not die.");
        const threadId = await victim.api.aThread();
        const { run_id: runId } = await victim.api.aRun(threadId, {
          assistant_id: "ledger",
          input: { steps: STEPS, milliseconds: 50 },
          durability,
        });
        runs.push({ threadId, runId, steps: STEPS });
        // The next victim must have only its own run.
        await survivor.api.untilRunIs(threadId, runId, "success", "error");
      }
    }
    const faults = await faultsOf(survivor.api, runs);
    const loops = await bench.query("select 1 from threadloom.checkpoints where parent_id = checkpoint_id");
    return {
      figure: `${DURABILITIES.length} deaths: ${runs.length - faults.length} of ${runs.length} runs well; loops ${loops.length}`,
      complaints: [...faults, ...complaintsWhere({ "a checkpoint is its own parent": loops.length > 0 })],
    };
  },
});
