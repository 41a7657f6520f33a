import type { AttemptSaver } from "../../../state/checkpoints/types.ts";
import type { ProjectKeys } from "../../../platform/config/project-keys.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { EncryptionSetup } from "../../../platform/encryption/setup.ts";
import type { LoadedModules } from "../../../platform/lib/module-trace.ts";
import type { StopReason } from "../executor.ts";
import type { ResumeRefusal } from "../strict-resume.ts";
import type { DescribedError } from "./described-error.ts";

/**
 * What the main process and a graph process tell each other: plain JSON over the pipe that `fork` opens. `id` names an
 * execution, by a number that the main process gives it.
 */

/** What a graph process needs to build its own way to the database, its checkpoints, store and graphs. */
export interface GraphProcessSetup {
  connectionString: string;
  schema: string;
  preparedStatements: boolean;
  /** Connections that this process may hold. */
  poolSize: number;
  /** Path of langgraph.json. */
  graphConfigFile: string;
  /** What the environment says of it. */
  projectKeys: ProjectKeys;
  recursionLimitMax: number;
  eventCharactersAtMost: number;
  stateValueCharactersAtMost: number;
  /** How long the process may be silent before it is killed; 0: for ever. */
  blockedSeconds: number;
  logLevel: string;
  logContents: boolean;
  /** Over the pipe, and not in the environment, which graphs and their own processes see. */
  encryption: EncryptionSetup;
  /**
   * For development: the process loads what is named here of packages, says `prepared`, and loads the graphs when it is told to
   * `load`. It tells which files they were `loaded` from.
   */
  packagesAhead: readonly string[] | undefined;
}

export type ToGraphProcess =
  /** The first message. */
  | { kind: "setup"; setup: GraphProcessSetup }
  /** See `packagesAhead`. */
  | { kind: "load" }
  /**
   * `wanted`: somebody reads the events; `logged`: they go to the log; `wantsValues`: somebody waits for the final values; `acknowledged`: the process is to
   * say when it has begun. Dates of the row arrive as text; no graph is given them.
   */
  | {
      kind: "execute";
      id: number;
      run: ClaimedRunRow;
      wanted: boolean;
      logged: boolean;
      wantsValues: boolean;
      publishesProtocol: boolean;
      acknowledged: boolean;
    }
  /** From now on somebody reads the events, or they are logged. */
  | { kind: "wanted"; id: number; logged: boolean }
  /** Answers one `log`. */
  | { kind: "logged"; id: number }
  /** Somebody waits for the final values from now on; if it comes too late, they are read from the thread. */
  | { kind: "values"; id: number }
  | { kind: "stop"; id: number; reason: StopReason }
  /** So many characters of events have been taken over. */
  | { kind: "taken"; id: number; characters: number }
  | { kind: "ping" }
  /** The API of the server, for clients that graphs make. */
  | { kind: "listening"; address: string }
  /** No execution is here any more: the process is to end. */
  | { kind: "close" };

/** Name and data of an event; the data are one line of JSON. */
export type EventPair = readonly [event: string, data: string, checkpoint?: string];

/** A text, or why it could not be made. */
export type MadeText<Text> = { text: Text } | { error: DescribedError };

/** An AttemptResult that can be sent. */
export type SentResult =
  | {
      kind: "completed";
      values: MadeText<string | undefined>;
      interrupts: MadeText<string> | undefined;
      lastUnsafe: AttemptSaver["lastUnsafe"];
    }
  | { kind: "failed"; error: DescribedError }
  | { kind: "refused"; refusal: ResumeRefusal }
  | { kind: "stopped"; reason: StopReason };

/** The execution whose code has ended its process, or keeps it from answering; it may be over. See `writeExitReport`. */
export interface Culprit extends Pick<ClaimedRunRow, "run_id" | "thread_id" | "graph_id"> {
  id: number;
  /** Undefined if it was not called by a node. */
  node: string | undefined;
  /** What it did, as the end of a sentence. */
  how: string;
  /** The process has not ended: it is silent, and may yet answer again. */
  isUnresponsive?: true;
}

export type FromGraphProcess =
  /** Graphs are loaded: executions may begin. */
  | { kind: "ready" }
  /** See `packagesAhead`. */
  | { kind: "prepared" }
  /** The graphs can't be loaded, in development; for a person. */
  | { kind: "failed"; message: string }
  | ({ kind: "loaded" } & LoadedModules)
  /** The events of one turn of the loop, by execution. */
  | { kind: "events"; batches: { id: number; events: EventPair[] }[] }
  | { kind: "begun"; id: number }
  /** Is answered when the log has the events that were sent before. */
  | { kind: "log"; id: number }
  | { kind: "graph-ended"; id: number }
  | { kind: "result"; id: number; result: SentResult }
  /** Answers `ping`; `residentBytes` is the memory that the process takes. */
  | { kind: "pong"; residentBytes: number };

/** What an event counts in the windows and bounds of both sides, beside its text. */
const EVENT_OVERHEAD_CHARACTERS = 100;

export const charactersOf = ([event, data]: EventPair): number =>
  event.length + data.length + EVENT_OVERHEAD_CHARACTERS;

/** Events of an execution that are on their way at most, in characters; then its graph waits. As RunChannel does. */
export const WINDOW_CHARACTERS = 1024 * 1024;
