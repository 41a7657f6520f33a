import type { AttemptSaver } from "../../../state/checkpoints/types.ts";
import type { SpanExport } from "../../../graphs/trace/exported-spans.ts";
import type { TraceRecords } from "../../../graphs/trace/recorder.ts";
import type { ProjectKeys } from "../../../platform/config/project-keys.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { ObjectStoreSetup } from "../../../platform/database/object-store.ts";
import type { EncryptionSetup } from "../../../platform/encryption/cipher.ts";
import type { StopReason } from "../executor.ts";
import type { ResumeRefusal } from "../strict-resume.ts";
import { sqlState, StateLostError, StateStorageError } from "../../../platform/domain/errors.ts";
import { describeThrown } from "../../../platform/lib/thrown.ts";

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
  /** Development: the process says which files it has loaded, or why it can't load the graphs. */
  isReloading: boolean;
}

export type ToGraphProcess =
  | { kind: "setup"; setup: GraphProcessSetup }
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
  /** Development: the graphs can't be loaded; for a person. */
  | { kind: "failed"; message: string }
  | { kind: "loaded"; files: readonly string[] }
  /** By execution. */
  | { kind: "events"; batches: [id: number, events: EventPair[]][] }
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

export interface DescribedError {
  /** `passing`: the database was unreachable or lost state, so the run is tried again. */
  kind: "passing" | "state-storage" | "database" | "other";
  name: string;
  message: string;
  stack: string | undefined;
  code: string | undefined;
  cause: DescribedError | undefined;
}

const STACK_CHARACTERS_AT_MOST = 10_000;
const CAUSES_AT_MOST = 5;

export const describeError = (
  error: unknown,
  isLoss: (error: unknown) => boolean,
  causes = CAUSES_AT_MOST,
): DescribedError => {
  const { stack, cause } = error instanceof Error ? error : {};
  const kindOf = (): DescribedError["kind"] => {
    if (isLoss(error) || error instanceof StateLostError || error instanceof PassedFaultError)
      return "passing";
    if (error instanceof StateStorageError) return "state-storage";
    return sqlState(error) !== undefined && "routine" in (error as Error) ? "database" : "other";
  };
  return {
    kind: kindOf(),
    ...describeThrown(error),
    stack: typeof stack === "string" ? stack.slice(0, STACK_CHARACTERS_AT_MOST) : undefined,
    code: sqlState(error),
    cause: cause instanceof Error && causes > 0 ? describeError(cause, isLoss, causes - 1) : undefined,
  };
};

/** Another process could not reach the database, or the database lost state. */
export class PassedFaultError extends Error {}

export const restoreError = ({ kind, name, message, stack, code, cause }: DescribedError): Error => {
  const options = cause === undefined ? {} : { cause: restoreError(cause) };
  const error =
    kind === "passing"
      ? new PassedFaultError(message, options)
      : kind === "state-storage"
        ? new StateStorageError(message, options)
        : new Error(message, options);
  return Object.assign(error, {
    name,
    stack,
    ...(code === undefined ? {} : { code }),
    // error-for-clients.ts recognizes errors of PostgreSQL by this property.
    ...(kind === "database" ? { routine: "" } : {}),
  });
};
