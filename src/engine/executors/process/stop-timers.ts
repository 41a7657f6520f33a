import type { ExecutionThere } from "./execution-there.ts";
import type { GraphProcess } from "./graph-process.ts";

/** What a run may take to end after it was told to stop; then its process is killed. Its graph was given 0.5 s of it. */
const STOP_MS = 5_000;
/** The same when the server ends: whoever stops it kills it after some seconds. */
const SHUTDOWN_STOP_MS = 1_500;

/** Ends the processes of runs that go on though they were told to stop. */
export const createStopTimers = () => {
  const timers = new Map<ExecutionThere, NodeJS.Timeout>();
  return {
    start(execution: ExecutionThere, process: GraphProcess): void {
      const ms = execution.stopReason?.kind === "shutdown" ? SHUTDOWN_STOP_MS : STOP_MS;
      const kill = (): void =>
        process.kill("unstopped", `was killed: a run went on for ${ms} ms after it was stopped`);
      timers.set(execution, setTimeout(kill, ms));
    },
    forget(execution: ExecutionThere): void {
      clearTimeout(timers.get(execution));
      timers.delete(execution);
    },
    close(): void {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
};
