import type { AttemptSaver } from "../../../state/checkpoints/types.ts";
import type { ProjectKeys } from "../../../platform/config/project-keys.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { EncryptionSetup } from "../../../platform/encryption/setup.ts";
import type { LoadedModules } from "../../../platform/lib/module-trace.ts";
import type { StopReason } from "../executor.ts";
import type { ResumeRefusal } from "../strict-resume.ts";
import type { DescribedError } from "./described-error.ts";

/**
 * Messages between the main process and a graph process: JSON over the pipe of `fork`. `id` is the main
 * process's number of an execution.
 */

export interface GraphProcessSetup {
  connectionString: string;
  schema: string;
  preparedStatements: boolean;
  /** Connections of this process at most. */
  poolSize: number;
  /** Path of langgraph.json. */
  graphConfigFile: string;
  /** From the environment. */
  projectKeys: ProjectKeys;
  recursionLimitMax: number;
  eventCharactersAtMost: number;
  stateValueCharactersAtMost: number;
  /** See GraphProcessOptions. */
  blockedSeconds: number;
  logLevel: string;
  logContents: boolean;
  /** Sent over the pipe, because graphs and their child processes see the environment. */
  encryption: EncryptionSetup;
  /**
   * Development: the process loads these packages, sends `prepared`, and loads the graphs on `load`. `loaded`
   * names their files.
   */
  packagesAhead: readonly string[] | undefined;
}

export type ToGraphProcess =
  /** The first message. */
  | { kind: "setup"; setup: GraphProcessSetup }
  /** See `packagesAhead`. */
  | { kind: "load" }
  /**
   * `wanted`: the events have a reader; `logged`: they go to the log; `wantsValues`: the final values have a
   * reader; `acknowledged`: confirm with `begun`. The row's dates arrive as text; graphs do not get them.
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
  /** The events have a reader or go to the log from now on. */
  | { kind: "wanted"; id: number; logged: boolean }
  /** Answers one `log`. */
  | { kind: "logged"; id: number }
  /** The final values have a reader from now on; after the end they are read from the thread. */
  | { kind: "values"; id: number }
  | { kind: "stop"; id: number; reason: StopReason }
  | { kind: "taken"; id: number; characters: number }
  | { kind: "ping" }
  /** The address of the server's API, for clients in graphs. */
  | { kind: "listening"; address: string }
  /** No executions are left; the process has to end. */
  | { kind: "close" };

/** The data are one line of JSON. */
export type EventPair = readonly [event: string, data: string, checkpoint?: string];

export type MadeText<Text> = { text: Text } | { error: DescribedError };

/** An AttemptResult as JSON. */
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

/** The execution whose code ended or blocks its process; it may be over. See `writeExitReport`. */
export interface Culprit extends Pick<ClaimedRunRow, "run_id" | "thread_id" | "graph_id"> {
  id: number;
  /** Undefined outside nodes. */
  node: string | undefined;
  /** The end of a sentence. */
  how: string;
  /** The process is silent but has not ended. */
  isUnresponsive?: true;
}

export type FromGraphProcess =
  /** Graphs are loaded. */
  | { kind: "ready" }
  /** See `packagesAhead`. */
  | { kind: "prepared" }
  /** Development: the graphs can't be loaded; for a person. */
  | { kind: "failed"; message: string }
  | ({ kind: "loaded" } & LoadedModules)
  /** The events of one turn of the loop, by execution. */
  | { kind: "events"; batches: { id: number; events: EventPair[] }[] }
  | { kind: "begun"; id: number }
  /** Answered when the log has the events sent before. */
  | { kind: "log"; id: number }
  | { kind: "graph-ended"; id: number }
  | { kind: "result"; id: number; result: SentResult }
  /** Answers `ping`. */
  | { kind: "pong"; residentBytes: number };

/** Counted for each event besides its text. */
const EVENT_OVERHEAD_CHARACTERS = 100;

export const charactersOf = ([event, data]: EventPair): number =>
  event.length + data.length + EVENT_OVERHEAD_CHARACTERS;

/** Unprocessed events of an execution before its graph pauses; as in RunChannel. */
export const WINDOW_CHARACTERS = 1024 * 1024;
