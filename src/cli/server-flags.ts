import { Option as CommandOption, type Command } from "commander";
import type { Option } from "../platform/config/option.ts";
import { OPTIONS } from "../platform/config/options.ts";
import type { Flags } from "../platform/config/resolve.ts";
import { serverVersion } from "../platform/lib/package-versions.ts";

const NAMES = Object.keys(OPTIONS) as (keyof typeof OPTIONS)[];

const optionOf = (
  { flag, shortFlag, switch: isSwitch, description, environment, default: usual }: Option<unknown>,
  defaults: Readonly<Record<string, string>>,
): CommandOption | undefined => {
  if (flag === undefined) return undefined;
  const flags = `${shortFlag === undefined ? "" : `-${shortFlag}, `}--${flag}${isSwitch ? "" : " <value>"}`;
  const value = environment.map((name) => defaults[name]).find(Boolean) ?? usual ?? "";
  const text = isSwitch || value === "" ? description : `${description} Default: ${value}`;
  return new CommandOption(flags, `${text} [${environment.join(", ")}]`);
};

const HELP = `
The environment may set an option by the name in brackets. docs/configuration.md lists the variables that have no flag.
Options of npm scripts follow a --: npm start -- --port 8124`;

/** @param defaults the command's own defaults, by environment variable */
export const onServer = (
  command: Command,
  defaults: Readonly<Record<string, string>>,
  examples: string,
): Command => {
  for (const name of NAMES) {
    const option = optionOf(OPTIONS[name], defaults);
    if (option !== undefined) command.addOption(option);
  }
  return command
    .version(serverVersion(), "-v, --version", "print the version")
    .showHelpAfterError(
      "Options are listed by --help. Those of npm scripts follow a --: npm start -- --port 8124.",
    )
    .addHelpText("after", examples + HELP);
};

export const flagsOf = (command: Command): Flags =>
  Object.fromEntries(
    NAMES.flatMap((name) => {
      const { flag }: Option<unknown> = OPTIONS[name];
      const option = command.options.find(({ long }) => flag !== undefined && long === `--${flag}`);
      const value: unknown = option && command.getOptionValue(option.attributeName());
      return value === undefined ? [] : [[name, String(value)]];
    }),
  );
