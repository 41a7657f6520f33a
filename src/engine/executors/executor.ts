import type { AttemptSaver } from "../../state/checkpoints/types.ts";
import type { CancelAction, ClaimedRunRow } from "../../platform/database/tables.ts";
import type { ResumeRefusal } from "./strict-resume.ts";

/** Why an attempt was told to stop. */
export type StopReason =
  | { kind: "cancel"; action: CancelAction }
  /** BG_JOB_TIMEOUT_SECS have passed. */
  | { kind: "timeout" }
  /** Another attempt has the run, or will. */
  | { kind: "lease-lost" }
  /** This process stops; the run goes on elsewhere. */
  | { kind: "shutdown" }
  /** This process ends by a fault, maybe the run's: the attempt is lost, as if the process had been killed. */
  | { kind: "process-failed" };

/** What became of the graph's execution; nothing of it is written yet. */
export type GraphResult =
  | {
      kind: "completed";
      /** The graph's final values as JSON, made when asked for; undefined if it showed none, or nobody waits for them. */
      values: () => string | undefined;
      /** A JSON list of the interrupts at which the graph stopped; undefined if it came to its end. */
      interrupts: (() => string) | undefined;
      /** See AttemptSaver: a run must not end as success on what a crash of the database has taken. */
      lastUnsafe?: AttemptSaver["lastUnsafe"];
    }
  | { kind: "failed"; error: unknown }
  /** Nothing was executed: the run answers what does not wait. */
  | { kind: "refused"; refusal: ResumeRefusal }
  | { kind: "stopped"; reason: StopReason };

/** The same, where graphs are executed in other processes. */
export type AttemptResult =
  | GraphResult
  /** The process that executed the graph has ended, by this run or by another one. `how`: as the end of a sentence. */
  | { kind: "lost"; how: string };

/** Where an attempt tells its events. */
export interface AttemptEvents {
  /**
   * `data` makes one line of JSON; it is called only if somebody wants the event. `checkpoint`: that of the state which the event
   * shows, for who joins the run with it.
   */
  emit(event: string, data: () => string, checkpoint?: string): void;
  /** Whether whoever emits should wait for `pause()` first. */
  readonly needsPause: boolean;
  pause(): Promise<void>;
  /** Whether events go to the log. */
  readonly hasLog: boolean;
  /** Resolves when the log has what was emitted so far, or has refused it; undefined if it has. */
  logged(): Promise<void> | undefined;
}

/** A sink whose readers come and go: what nobody wants need not be made, nor be sent. */
export interface WatchedSink extends AttemptEvents {
  readonly wanted: boolean;
  /** Calls back when events are wanted that were not before, and when they are to be logged. */
  onWanted(listener: () => void): void;
}

export interface ExecutionOptions {
  /** The run may be what ended its processes before: where graphs have processes of their own, it gets one for itself. */
  isSuspect: boolean;
  /** Its events are told over the protocol wire, too. */
  publishesProtocol: boolean;
  /** Called once, when the graph takes no more time: what is outstanding is still to be stored. */
  onGraphEnded(): void;
}

/** A graph that is being executed for one attempt of a run. */
export interface GraphExecution<Result = AttemptResult> {
  /** Never rejects. */
  readonly result: Promise<Result>;
  /** The first reason counts. */
  stop(reason: StopReason): void;
  /** Somebody waits for the final values; otherwise they need not leave the place where the graph is executed. */
  wantValues(): void;
}

/** Executes the graphs of claimed runs, here or in other processes. */
export interface GraphExecutor<Result = AttemptResult> {
  /** Suspects that may be executed at the same time, each where it harms nobody; 0: they share this process. */
  readonly suspectsAtOnce: number;
  /** Begins at once. Knows nothing of leases and statuses; the checkpoints that the graph makes are stored, fenced. */
  execute(run: ClaimedRunRow, sink: WatchedSink, options: ExecutionOptions): GraphExecution<Result>;
}
