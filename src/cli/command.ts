import type { Command } from "commander";

export interface CommandSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The answer, to stdout. */
  write(text: string): void;
  /** Writes to stderr, for people. */
  note(text: string): void;
  readonly terminal: boolean;
  readonly canAsk: boolean;
  /** Undefined if the output is not a terminal. */
  readonly columns?: number | undefined;
  /** Aborts when the reader of stdout is gone, as with `| head`. */
  readonly unread: AbortSignal;
  /** Aborts on SIGINT and SIGTERM. After this call, those signals no longer end the process. */
  stopping(): AbortSignal;
}

export type CreateCommand = (surroundings: CommandSurroundings) => Command;
