import type { AttemptSaver } from "../../../state/checkpoints/types.ts";
import type { SpanExport } from "../../../graphs/trace/exported-spans.ts";
import type { TraceRecords } from "../../../graphs/trace/recorder.ts";
import type { ProjectKeys } from "../../../platform/config/project-keys.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { ObjectStoreSetup } from "../../../platform/database/object-store.ts";
import type { EncryptionSetup } from "../../../platform/encryption/cipher.ts";
import type { LoadedModules } from "../../../platform/lib/module-trace.ts";
import type { StopReason } from "../executor.ts";
import type { ResumeRefusal } from "../strict-resume.ts";
import type { DescribedError } from "./described-error.ts";

/** JSON over the pipe of `fork`. `id` is the main process's number of an execution. */

export interface GraphProcessSetup {
  connectionString: string;
  schema: string;
  preparedStatements: boolean;
  poolSize: number;
  graphConfigFile: string;
  projectKeys: ProjectKeys;
  recursionLimitMax: number;
  eventCharactersAtMost: number;
  stateValueCharactersAtMost: number;
  logLevel: string;
  logContents: boolean;
  /** Sent over the pipe, because graphs and their child processes see the environment. */
  encryption: EncryptionSetup;
  objectStore: ObjectStoreSetup | undefined;
  /** Development: the process loads these packages, sends `prepared`, and loads the graphs on `load`. */
  packagesAhead: readonly string[] | undefined;
}

export type ToGraphProcess =
  | { kind: "setup"; setup: GraphProcessSetup }
  | { kind: "load" }
  /**
   * `wanted`: the events have a reader; `wantsValues`: the final values have one. The row's dates arrive as text.
   */
  | {
      kind: "execute";
      id: number;
      run: ClaimedRunRow;
      wanted: boolean;
      logged: boolean;
      wantsValues: boolean;
      publishesProtocol: boolean;
      keepsSpans: boolean;
      exported?: SpanExport | undefined;
    }
  | { kind: "wanted"; id: number; logged: boolean }
  /** `failure`: the log will never have the events, so the attempt must store nothing more. */
  | { kind: "logged"; id: number; failure?: DescribedError }
  /** The final values have a reader. After the end they are read from the thread. */
  | { kind: "values"; id: number }
  | { kind: "stop"; id: number; reason: StopReason }
  | { kind: "taken"; id: number; characters: number }
  | { kind: "ping" }
  | { kind: "listening"; address: string }
  | { kind: "close" };

/** The data are one line of JSON. */
export type EventPair = readonly [event: string, data: string, checkpoint?: string];

export type MadeText<Text> = { text: Text } | { error: DescribedError };

export type SentResult =
  | {
      kind: "completed";
      values: MadeText<string | undefined>;
      interrupts: MadeText<string> | undefined;
      /** Of the values, if they have a reader. */
      outputKeys: readonly string[] | undefined;
      lastUnsafe: AttemptSaver["lastUnsafe"];
    }
  | { kind: "failed"; error: DescribedError }
  | { kind: "refused"; refusal: ResumeRefusal }
  | { kind: "stopped"; reason: StopReason };

export type FromGraphProcess =
  | { kind: "ready" }
  | { kind: "prepared" }
  /** Development: the graphs can't be loaded; for a person. */
  | { kind: "failed"; message: string }
  | ({ kind: "loaded" } & LoadedModules)
  | { kind: "events"; batches: { id: number; events: EventPair[] }[] }
  /** Answered by `logged` when the log has the events sent before, or has given up. */
  | { kind: "log"; id: number }
  | { kind: "graph-ended"; id: number }
  | { kind: "records"; id: number; records: TraceRecords }
  /** `records`: the last of the attempt. */
  | { kind: "result"; id: number; result: SentResult; records?: TraceRecords | undefined }
  /** `checkpointWrites`: the seconds of each statement that stored checkpoints since the last pong. */
  | { kind: "pong"; residentBytes: number; checkpointWrites?: readonly number[] };

const EVENT_OVERHEAD_CHARACTERS = 100;

export const charactersOf = ([event, data]: EventPair): number =>
  event.length + data.length + EVENT_OVERHEAD_CHARACTERS;

export const WINDOW_CHARACTERS = 1024 * 1024;
