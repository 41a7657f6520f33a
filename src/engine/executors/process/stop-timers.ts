import type { RemoteExecution } from "./remote-execution.ts";
import type { GraphProcess } from "./graph-process.ts";

/**
 * What a graph may take to end after it was told to stop; then its process is killed. It is given up after 0.5 s, so only
 * one that keeps the loop from turning is not heard of by then.
 */
const STOP_MS = 5_000;
/** What a run may take when the server ends, its progress stored or not: whoever stops it kills it after some seconds. */
const SHUTDOWN_STOP_MS = 1_500;

/**
 * A graph that has ended harms nobody, and its progress may have to wait for the database for longer than STOP_MS: a kill
 * then would take that progress, and the attempts of its neighbours.
 */
const maySettle = ({ isGraphEnded, stopReason }: RemoteExecution): boolean =>
  isGraphEnded && stopReason?.kind !== "shutdown";

/** Ends the processes of runs that go on though they were told to stop. */
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
