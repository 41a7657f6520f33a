/**
 * Each run of a thread adds `steps` items `label:n`, one every `milliseconds`. So the state shows which run took which step, in which
 * order. LEDGER_FILE gets the beginning and the end of each step, as from the graph `ledger`.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  label: Annotation<string>(),
  steps: Annotation<number>(),
  milliseconds: Annotation<number>(),
  items: Annotation<string[], string[]>({
    reducer: (before, added) => [...before, ...added],
    default: () => [],
  }),
});

const file = process.env["LEDGER_FILE"] ?? "/dev/null";

const taken = ({ items, label }: typeof State.State): number =>
  items.filter((item) => item.startsWith(`${label}:`)).length;

export const graph = new StateGraph(State)
  .addNode("step", async (state, config) => {
    const step = taken(state) + 1;
    const { run_id, run_attempt } = config.configurable as { run_id: string; run_attempt: number };
    const note = (phase: "begin" | "end"): void =>
      appendFileSync(
        file,
        `${JSON.stringify({ run: run_id, attempt: run_attempt, step, phase, pid: process.pid, at: Date.now() })}\n`,
      );
    note("begin");
    await pause(state.milliseconds, undefined, { signal: config.signal });
    note("end");
    return { items: [`${state.label}:${step}`] };
  })
  .addEdge(START, "step")
  .addConditionalEdges("step", (state) => (taken(state) < state.steps ? "step" : END), ["step", END])
  .compile();
