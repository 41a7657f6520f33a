import type { ContenderName, Results } from "../results.ts";

export const NAMES: Readonly<Record<ContenderName, string>> = {
  threadloom: "Threadloom",
  none: "LangGraph.js, no saver",
  memory: "LangGraph.js, memory saver",
  official: "LangGraph.js, official saver",
  peer: "LangGraph dev server",
};

/** For measurements that are repeated. */
export const repeatsOf = ({ repeats }: Results): string =>
  repeats === 1 ? "One repeat" : `Medians of ${repeats} repeats`;

/**
 * The text below a chart: the machine and the method. `howOften` begins a sentence. With a load of more than a little the text says that
 * the figures are unreliable.
 */
export const originOf = ({ machine, command, note }: Results, howOften: string): string =>
  `Measured ${machine.date}, commit ${machine.commit}: ${machine.cores} cores of ${machine.processor}, Node ${machine.node.replace(/^v/, "")}, ` +
  `PostgreSQL ${machine.postgres}, shared by client, server and database; load before: ${machine.loadBefore?.toFixed(1) ?? "not noted"}. ` +
  `${howOften} of: ${command}.${note === undefined ? "" : ` ${note}`}`;
