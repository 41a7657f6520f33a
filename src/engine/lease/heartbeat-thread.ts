import { Worker } from "node:worker_threads";
import type { AttemptSelector } from "../queue/attempts.ts";
import type { HeartbeatRow } from "../queue/sql/renew.ts";

export interface ThreadSetup {
  connectionString: string;
  applicationName: string;
  /** `name`: of the prepared statement; undefined without prepared statements. */
  statement: { text: string; name: string | undefined };
  timeoutMs: number;
  leaseSeconds: number;
  heartbeatMs: number;
  /** Growing pauses before the retries of a failed renewal; the next heartbeat renews in any case. */
  retriesMs: readonly number[];
  /** Without a heartbeat of the event loop for this time, leases are not renewed. */
  blockedLoopMs: number;
  /** After this time also end the process, so that its supervisor restarts it. */
  endsProcess: boolean;
  /** Shared memory of held-attempts.ts. */
  held: Int32Array;
  /** Shared memory: see SIGNS_OF_LIFE and BEATS. */
  counters: Int32Array;
}

export const SIGNS_OF_LIFE = 0;
export const BEATS = 1;
export const COUNTERS = 2;

export type ThreadOrder = "renew" | "close";

export type ThreadReport =
  | { kind: "renewed"; asked: AttemptSelector[]; rows: HeartbeatRow[] }
  | { kind: "failed"; reason: string; code: string | undefined }
  | { kind: "lost-connection"; reason: string; code: string | undefined };

/** The thread needs 11 MiB; without limits V8 lets its heap grow before it collects garbage. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };
/** A connection without an answer delays an orderly end. */
const CLOSE_MS = 1_000;

export const startHeartbeatThread = (
  setup: ThreadSetup,
  entry: URL,
  onReport: (report: ThreadReport) => void,
  onDeath: (error: Error) => void,
) => {
  // With this process's options the thread would load tsx, which it does not need.
  const thread = new Worker(entry, {
    name: "heartbeat",
    execArgv: [],
    workerData: setup,
    resourceLimits: LIMITS,
  });
  thread.unref();
  let closing = false;
  let failure: Error | undefined;
  thread.on("message", onReport);
  thread.on("error", (error) => {
    failure = error instanceof Error ? error : new Error(String(error));
  });
  const post = (order: ThreadOrder): void => thread.postMessage(order);
  const exited = new Promise<void>((resolve) => {
    thread.once("exit", (code) => {
      resolve();
      if (!closing) onDeath(failure ?? new Error(`The thread ended with ${code}.`));
    });
  });
  return {
    renew: (): void => post("renew"),
    async close(): Promise<void> {
      closing = true;
      post("close");
      let timer: NodeJS.Timeout | undefined;
      const tooLong = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MS);
      });
      await Promise.race([exited, tooLong]);
      clearTimeout(timer);
      await thread.terminate();
    },
  };
};

export type HeartbeatThread = ReturnType<typeof startHeartbeatThread>;
