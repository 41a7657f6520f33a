import type { RemoteExecution } from "./remote-execution.ts";
import type { GraphProcess } from "./graph-process.ts";

/**
 * Time between `stop` and the kill. The execution is given up after 0.5 s, so only a blocked event loop takes
 * longer.
 */
const STOP_MS = 5_000;
/** A supervisor kills the server after some seconds. */
const SHUTDOWN_STOP_MS = 1_500;

/**
 * A run whose graph has ended does no harm, and a kill would lose its progress and the attempts of other
 * runs.
 */
const maySettle = ({ isGraphEnded, stopReason }: RemoteExecution): boolean =>
  isGraphEnded && stopReason?.kind !== "shutdown";

export const createStopTimers = () => {
  const timers = new Map<RemoteExecution, NodeJS.Timeout>();
  return {
    start(execution: RemoteExecution, process: GraphProcess): void {
      if (maySettle(execution)) return;
      const ms = execution.stopReason?.kind === "shutdown" ? SHUTDOWN_STOP_MS : STOP_MS;
      const kill = (): void =>
        process.kill("unstopped", `was killed: the graph of a run went on for ${ms} ms after it was stopped`);
      timers.set(execution, setTimeout(kill, ms));
    },
    graphEnded(execution: RemoteExecution): void {
      if (maySettle(execution)) this.forget(execution);
    },
    forget(execution: RemoteExecution): void {
      clearTimeout(timers.get(execution));
      timers.delete(execution);
    },
    close(): void {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
};
