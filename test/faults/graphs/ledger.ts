/**
 * Takes `steps` steps of `milliseconds` each, and writes the beginning and end of each with its attempt to LEDGER_FILE: the real order of
 * events, independent of the database. The state collects `done`. In step `harmAt` it does `harm` to its process, in the first
 * `harmAttempts` attempts (all if left out).
 */
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { HARMS, type Harm } from "../../fixtures/harms.ts";

const State = Annotation.Root({
  steps: Annotation<number>(),
  milliseconds: Annotation<number>(),
  harm: Annotation<Harm | undefined>(),
  harmAt: Annotation<number | undefined>(),
  harmAttempts: Annotation<number>(),
  done: Annotation<number[], number[]>({
    reducer: (before, added) => [...before, ...added],
    default: () => [],
  }),
});

const file = process.env["LEDGER_FILE"] ?? "/dev/null";

export const graph = new StateGraph(State)
  .addNode("step", async ({ done, milliseconds, harm, harmAt, harmAttempts = Infinity }, config) => {
    const step = done.length + 1;
    const { run_id, run_attempt } = config.configurable as { run_id: string; run_attempt: number };
    // One short line per write is appended whole, also by concurrent processes and by one that is killed next.
    const note = (phase: "begin" | "end"): void =>
      appendFileSync(
        file,
        `${JSON.stringify({ run: run_id, attempt: run_attempt, step, phase, pid: process.pid, at: Date.now() })}\n`,
      );
    note("begin");
    config.writer?.({ step });
    if (harm !== undefined && step === harmAt && run_attempt <= harmAttempts) await HARMS[harm]();
    await pause(milliseconds, undefined, { signal: config.signal });
    note("end");
    return { done: [step] };
  })
  .addEdge(START, "step")
  .addConditionalEdges("step", ({ done, steps }) => (done.length < steps ? "step" : END), ["step", END])
  .compile();
