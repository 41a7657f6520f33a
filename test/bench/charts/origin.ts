import type { ContenderName, Results } from "../results.ts";

/** How charts call who was measured. */
export const NAMES: Readonly<Record<ContenderName, string>> = {
  threadloom: "Threadloom",
  none: "LangGraph.js, no saver",
  memory: "LangGraph.js, memory saver",
  official: "LangGraph.js, official saver",
  peer: "LangGraph dev server",
};

/** For what is measured as often as the benchmark repeats things. */
export const repeatsOf = ({ repeats }: Results): string =>
  repeats === 1 ? "One repeat" : `Medians of ${repeats} repeats`;

/** Below a chart: on what its figures were measured, and how. `howOften` begins a sentence. A load of more than a little says that they are not worth much. */
export const originOf = ({ machine, command, note }: Results, howOften: string): string =>
  `Measured ${machine.date}, commit ${machine.commit}: ${machine.cores} cores of ${machine.processor}, Node ${machine.node.replace(/^v/, "")}, ` +
  `PostgreSQL ${machine.postgres}, shared by client, server and database; load before: ${machine.loadBefore?.toFixed(1) ?? "not noted"}. ` +
  `${howOften} of: ${command}.${note === undefined ? "" : ` ${note}`}`;
