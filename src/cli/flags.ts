import { InvalidArgumentError, Option, type Command } from "commander";
import { createLogger, type Logger } from "../platform/lib/logger.ts";
import { prettyLines } from "../platform/lib/pretty-lines.ts";

/** Lines for people: a command's results are on standard output. */
export const commandLogger = (level: string, note: (text: string) => void): Logger =>
  createLogger({ level, destination: prettyLines({ write: note }) });

export const answeringJson = (command: Command): Command =>
  command.addOption(new Option("--json", "answer as JSON"));

const LIMIT_AT_MOST = 1_000;

export const limitArgument = (text: string): number => {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= LIMIT_AT_MOST) return number;
  throw new InvalidArgumentError(`Use a number from 1 to ${LIMIT_AT_MOST}.`);
};
