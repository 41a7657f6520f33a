import { Worker } from "node:worker_threads";
import type { AttemptSelector } from "../queue/attempts.ts";
import type { HeartbeatRow } from "../queue/sql/renew.ts";

/** What the thread is started with; it is copied into it. */
export interface ThreadSetup {
  connectionString: string;
  applicationName: string;
  /** `name`: prepared under it, once per connection; undefined where that is not possible. */
  statement: { text: string; name: string | undefined };
  /** How long a connection and an answer are waited for. */
  timeoutMs: number;
  leaseSeconds: number;
  heartbeatMs: number;
  /** Pauses before the tries after a failed renewal, growing; it is tried again at the next heartbeat in any case. */
  retriesMs: readonly number[];
  /** Without a sign of life of the loop for this time, leases are not renewed. */
  blockedLoopMs: number;
  /** Then the process is ended, so that whatever supervises it starts it again. */
  endsProcess: boolean;
  /** Shared with the loop: the memory of held-attempts.ts. */
  held: Int32Array;
  /** Shared with the loop: see SIGNS_OF_LIFE and BEATS. */
  counters: Int32Array;
}

/** Counted up by the event loop at each of its heartbeats. */
export const SIGNS_OF_LIFE = 0;
/** Counted up by the thread when it is ready, and at each of its heartbeats. */
export const BEATS = 1;
export const COUNTERS = 2;

/** What the event loop tells the thread; `renew`: not at the next heartbeat, but now. */
export type ThreadOrder = "renew" | "close";

/** What the thread tells the event loop; nothing while all is well. */
export type ThreadReport =
  /** `rows` came back for what was `asked`: some did not, are to be cancelled, or are read elsewhere. */
  | { kind: "renewed"; asked: AttemptSelector[]; rows: HeartbeatRow[] }
  | { kind: "failed"; reason: string; code: string | undefined }
  /** An idle connection. */
  | { kind: "lost-connection"; reason: string; code: string | undefined };

export interface HeartbeatThread {
  renew(): void;
  /** Never rejects. */
  close(): Promise<void>;
}

export interface HeartbeatThreadOptions {
  setup: ThreadSetup;
  entry: URL;
  onReport(report: ThreadReport): void;
  /** It ended without being closed. */
  onDeath(error: Error): void;
}

/** The thread needs 11 MiB in all; without limits V8 lets its heap grow before it clears away what is dead. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };
/** A connection that does not answer holds up an orderly end. */
const CLOSE_MS = 1_000;

export const startHeartbeatThread = ({
  setup,
  entry,
  onReport,
  onDeath,
}: HeartbeatThreadOptions): HeartbeatThread => {
  // Without the options of this process: with them the thread would load tsx once more, which it does not need.
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
  const tell = (order: ThreadOrder): void => thread.postMessage(order);
  const exited = new Promise<void>((resolve) => {
    thread.once("exit", (code) => {
      resolve();
      if (!closing) onDeath(failure ?? new Error(`The thread ended with ${code}.`));
    });
  });
  return {
    renew: () => tell("renew"),
    async close() {
      closing = true;
      tell("close");
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
