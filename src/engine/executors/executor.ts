import type { AttemptSaver } from "../../state/checkpoints/types.ts";
import type { CancelAction, ClaimedRunRow } from "../../platform/database/tables.ts";
import type { RecordsOptions } from "./recording.ts";
import type { ResumeRefusal } from "./strict-resume.ts";

export type StopReason =
  | { kind: "cancel"; action: CancelAction }
  /** BG_JOB_TIMEOUT_SECS have passed. */
  | { kind: "timeout" }
  | { kind: "lease-lost" }
  /** This process stops; the run continues elsewhere. */
  | { kind: "shutdown" }
  /** This process fails, perhaps because of the run: the attempt counts as lost. */
  | { kind: "process-failed" };

export type GraphResult =
  | {
      kind: "completed";
      /** Serialized on demand; undefined without values or readers. */
      values: () => string | undefined;
      /** JSON list; undefined if the graph ended. */
      interrupts: (() => string) | undefined;
      /** See `outputKeysOf`. */
      outputKeys: readonly string[] | undefined;
      /** See AttemptSaver: a success must not rest on a checkpoint that the database lost in a crash. */
      lastUnsafe?: AttemptSaver["lastUnsafe"];
    }
  | { kind: "failed"; error: unknown }
  | { kind: "refused"; refusal: ResumeRefusal }
  | { kind: "stopped"; reason: StopReason };

export type AttemptResult =
  | GraphResult
  /** This run or another one ended the process. `how`: the end of a sentence. */
  | { kind: "lost"; how: string };

export interface AttemptEvents {
  /**
   * `data` returns one line of JSON, and is called only if the event has a reader. `checkpoint`: of the state
   * in the event, for clients that join the run.
   */
  emit(event: string, data: () => string, checkpoint?: string): void;
  /** The emitter should await `pause()` first. */
  readonly needsPause: boolean;
  pause(): Promise<void>;
  readonly hasLog: boolean;
  logged(): Promise<void> | undefined;
}

/** Events without a reader need not be serialized or sent. */
export interface WatchedSink extends AttemptEvents {
  readonly wanted: boolean;
  onWanted(listener: () => void): void;
}

export interface ExecutionOptions {
  /** The run gets a graph process of its own. */
  isAlone: boolean;
  publishesProtocol: boolean;
  records: RecordsOptions;
  onGraphEnded(): void;
}

export interface GraphExecution<Result = AttemptResult> {
  /** Never rejects. */
  readonly result: Promise<Result>;
  stop(reason: StopReason): void;
  /** Without this call the final values stay in the graph's process. */
  wantValues(): void;
}

export interface GraphExecutor<Result = AttemptResult> {
  /** Runs with processes of their own at a time; 0 while such a process does not start. */
  readonly aloneAtMost: number;
  /** Begins at once and stores fenced checkpoints. The caller manages leases and statuses. */
  execute(run: ClaimedRunRow, sink: WatchedSink, options: ExecutionOptions): GraphExecution<Result>;
}
