import { InvalidArgumentError, Option, type Command } from "commander";

export const answeringJson = (command: Command): Command =>
  command.addOption(new Option("--json", "answer as JSON"));

const LIMIT_AT_MOST = 1_000;

export const limitArgument = (text: string): number => {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= LIMIT_AT_MOST) return number;
  throw new InvalidArgumentError(`Use a number from 1 to ${LIMIT_AT_MOST}.`);
};
