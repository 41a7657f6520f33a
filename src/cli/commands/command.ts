import type { Command } from "commander";

/** What a command may use of the process that it is run by. */
export interface CommandSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The answer, which a script may read. */
  write(text: string): void;
  /** What a person reads beside it. */
  note(text: string): void;
  /** Whether a person reads the answer. */
  readonly terminal: boolean;
  /** Whether that person can answer, too. */
  readonly canAsk: boolean;
  /** Characters of a line of that person's terminal; undefined where nobody reads. */
  readonly columns?: number | undefined;
  /** Aborts when nobody reads the answer any more, as behind `| head`. */
  readonly unread: AbortSignal;
  /** Aborts when the process is asked to end. Asked for, the process does not end by itself. */
  stopping(): AbortSignal;
}

/** A file of this folder makes one command. It is loaded when that command is run, or its help is asked for. */
export type CreateCommand = (surroundings: CommandSurroundings) => Command;
