import type { Command } from "commander";

/** The parts of the process that a command may use. */
export interface CommandSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes the answer, which a script may read. */
  write(text: string): void;
  /** Writes to stderr, for people. */
  note(text: string): void;
  readonly terminal: boolean;
  /** Whether standard input is a terminal, too. */
  readonly canAsk: boolean;
  /** Width of the terminal; undefined if the output is not a terminal. */
  readonly columns?: number | undefined;
  /** Aborts when the reader of the answer has closed its pipe, as `| head` does. */
  readonly unread: AbortSignal;
  /** Aborts on SIGINT and SIGTERM. After this call, those signals no longer end the process. */
  stopping(): AbortSignal;
}

/** Each file of this folder makes one command. It is loaded when the command runs or shows its help. */
export type CreateCommand = (surroundings: CommandSurroundings) => Command;
