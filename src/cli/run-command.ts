import { CommanderError, type Command } from "commander";
import { StartError, ThreadloomError } from "../domain/errors.ts";
import { GraphLoadError } from "../project/langgraph-json.ts";

/** What a shell is told by the exit code. */
export const EXIT_CODES = { done: 0, notDone: 1, wrongUsage: 2 } as const;

const isPlain = (error: unknown): error is Error =>
  error instanceof StartError || error instanceof GraphLoadError || error instanceof ThreadloomError;

export interface RunOptions {
  /** Arguments behind the name of the program. */
  argv: readonly string[];
  /** For what a person reads beside the answer: errors, and the help of wrong usage. */
  tell: (text: string) => void;
  write: (text: string) => void;
}

/** Runs a command and answers the exit code. An error is one sentence; only a fault of ours has a stack. */
export const runCommand = async (command: Command, { argv, tell, write }: RunOptions): Promise<number> => {
  const named = (text: string): void => tell(`threadloom ${command.name()}: ${text}`);
  // Commander ends the process by itself unless each command is told not to.
  const prepare = (one: Command): void => {
    one.exitOverride();
    one.configureOutput({
      writeOut: write,
      writeErr: tell,
      outputError: (text) => named(text.replace(/^error: /, "")),
    });
    one.commands.forEach(prepare);
  };
  prepare(command);
  try {
    await command.parseAsync(argv, { from: "user" });
    return EXIT_CODES.done;
  } catch (error) {
    // Commander has printed why, or the help that was asked for.
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.wrongUsage;
    named(`${isPlain(error) ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
    return EXIT_CODES.notDone;
  }
};
