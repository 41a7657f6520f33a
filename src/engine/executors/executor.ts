import type { AttemptSaver } from "../../state/checkpoints/types.ts";
import type { CancelAction, ClaimedRunRow } from "../../platform/database/tables.ts";
import type { ResumeRefusal } from "./strict-resume.ts";

export type StopReason =
  | { kind: "cancel"; action: CancelAction }
  /** BG_JOB_TIMEOUT_SECS have passed. */
  | { kind: "timeout" }
  /** Another attempt has the run or will get it. */
  | { kind: "lease-lost" }
  /** This process stops; the run continues elsewhere. */
  | { kind: "shutdown" }
  /** This process fails, perhaps because of the run: the attempt counts as lost. */
  | { kind: "process-failed" };

/** The result of the execution, not stored yet. */
export type GraphResult =
  | {
      kind: "completed";
      /**
       * JSON of the final values, serialized on demand; undefined if there are none or they have no reader.
       */
      values: () => string | undefined;
      /** JSON list of the interrupts at which the graph stopped; undefined if it ended. */
      interrupts: (() => string) | undefined;
      /**
       * See AttemptSaver: a run must not end as success on a checkpoint that the database lost in a crash.
       */
      lastUnsafe?: AttemptSaver["lastUnsafe"];
    }
  | { kind: "failed"; error: unknown }
  /** Nothing was executed: the run answers an interrupt that is not pending. */
  | { kind: "refused"; refusal: ResumeRefusal }
  | { kind: "stopped"; reason: StopReason };

/** The same for graphs in other processes. */
export type AttemptResult =
  | GraphResult
  /** This run or another one ended the process. `how`: the end of a sentence. */
  | { kind: "lost"; how: string };

/** The sink of an attempt's events. */
export interface AttemptEvents {
  /**
   * `data` returns one line of JSON; called only if the event has a reader. `checkpoint`: of the state in the
   * event, for clients that join the run.
   */
  emit(event: string, data: () => string, checkpoint?: string): void;
  /** The emitter should await `pause()` first. */
  readonly needsPause: boolean;
  pause(): Promise<void>;
  /** Whether events go to the log. */
  readonly hasLog: boolean;
  /** Resolves when the log has stored or refused all events so far; undefined if it already has. */
  logged(): Promise<void> | undefined;
}

/** A sink whose readers come and go: events without a reader need not be serialized or sent. */
export interface WatchedSink extends AttemptEvents {
  readonly wanted: boolean;
  /** Called when events get a reader, and when they are to be logged. */
  onWanted(listener: () => void): void;
}

export interface ExecutionOptions {
  /** The run may have ended its processes: it gets a process of its own where graphs have processes. */
  isSuspect: boolean;
  /** Also publish events for event streaming. */
  publishesProtocol: boolean;
  /** Called once, when the graph has ended; outstanding checkpoints may still be stored. */
  onGraphEnded(): void;
}

export interface GraphExecution<Result = AttemptResult> {
  /** Never rejects. */
  readonly result: Promise<Result>;
  /** The first reason counts. */
  stop(reason: StopReason): void;
  /** The final values have a reader; otherwise they stay in the graph's process. */
  wantValues(): void;
}

/** Executes the graphs of claimed runs, here or in other processes. */
export interface GraphExecutor<Result = AttemptResult> {
  /** Suspects at a time, each in a process of its own; 0: suspects share this process. */
  readonly suspectsAtOnce: number;
  /** Begins at once. Stores fenced checkpoints; leases and statuses are the caller's. */
  execute(run: ClaimedRunRow, sink: WatchedSink, options: ExecutionOptions): GraphExecution<Result>;
}
