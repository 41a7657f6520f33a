import { CommanderError, type Command } from "commander";
import { EncryptionError, StartError, ThreadloomError, UsageError } from "../platform/domain/errors.ts";
import { GraphLoadError } from "../graphs/project/langgraph-json.ts";
import { printableLines } from "./printable.ts";

export const EXIT_CODES = { done: 0, notDone: 1, wrongUsage: 2 } as const;

export const EXIT_CODES_TEXT = "Exit codes: 0 done, 1 not done, 2 wrong usage.";

/** The command has reported its failure. */
export class NotDoneError extends Error {
  override readonly name = "NotDoneError";

  constructor(readonly exitCode: number = EXIT_CODES.notDone) {
    super();
  }
}

export const exitCodeOf = (error: unknown): number =>
  error instanceof UsageError ? EXIT_CODES.wrongUsage : EXIT_CODES.notDone;

const isPlain = (error: unknown): error is Error =>
  [StartError, GraphLoadError, ThreadloomError, EncryptionError].some((kind) => error instanceof kind);

/** Without a listener, a reader that closes the pipe (`head`) would end the process with a stack. */
export const writingTo = (
  stream: NodeJS.WritableStream,
  onGone: () => void = () => undefined,
): ((text: string) => void) => {
  stream.on("error", onGone);
  return (text) => void stream.write(text);
};

interface RunOptions {
  argv: readonly string[];
  note: (text: string) => void;
  write: (text: string) => void;
}

/** Commander's own `help keys create` prints the help of `keys`. */
const asked = ([first = "--help", ...words]: readonly string[]): string[] =>
  first === "help" && words.length > 0 ? [...words, "--help"] : [first, ...words];

export const runProgram = async (program: Command, options: RunOptions): Promise<number> => {
  const argv = asked(options.argv);
  const [first = ""] = argv;
  const isCommand = program.commands.some((command) => command.name() === first);
  const name = isCommand ? `${program.name()} ${first}` : program.name();
  const code = await runCommand(program, { ...options, argv }, name);
  if (code !== EXIT_CODES.done && first.startsWith("-"))
    options.note(`Options follow their command: ${program.name()} start ${first}\n`);
  return code;
};

/** Only bugs print a stack. @returns the exit code */
export const runCommand = async (
  command: Command,
  { argv, note, write }: RunOptions,
  name = `threadloom ${command.name()}`,
): Promise<number> => {
  // Error texts repeat arguments, which may hold control characters.
  const named = (text: string): void => note(`${name}: ${printableLines(text)}`);
  // By default commander ends the process.
  const prepare = (one: Command): void => {
    one.exitOverride();
    one.configureOutput({
      writeOut: write,
      writeErr: note,
      outputError: (text) => named(text.replace(/^error: /, "")),
    });
    one.commands.forEach(prepare);
  };
  prepare(command);
  try {
    await command.parseAsync(argv, { from: "user" });
    return EXIT_CODES.done;
  } catch (error) {
    if (error instanceof NotDoneError) return error.exitCode;
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.wrongUsage;
    named(`${isPlain(error) ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
    return exitCodeOf(error);
  }
};
