import type { Command } from "commander";
import type { Option } from "../platform/config/option.ts";
import { OPTIONS } from "../platform/config/options.ts";
import type { Flags } from "../platform/config/resolve.ts";
import { UsageError } from "../platform/domain/errors.ts";
import { nearestWord } from "../platform/lib/nearest-word.ts";
import { serverVersion } from "../platform/lib/package-versions.ts";

const ROWS = Object.entries(OPTIONS).filter(([, { flag }]) => flag !== undefined) as [
  string,
  Option<unknown>,
][];

/** For `start` and `dev`. */
export const onServer = (command: Command, helpOf: (listsEnvironment: boolean) => string): Command => {
  for (const [, { flag, shortFlag }] of ROWS)
    // The value is optional, so that `--port --host` is a port without a value.
    command.option(`${shortFlag === undefined ? "" : `-${shortFlag}, `}--${flag} [value]`);
  return command
    .option("--environment")
    .on("option:environment", () => command.help())
    .version(serverVersion(), "-v, --version")
    .configureHelp({ formatHelp: (one) => helpOf(one.getOptionValue("environment") === true) })
    .allowUnknownOption()
    .argument("[others...]");
};

const adviceFor = (name: string, { options }: Command): string => {
  const nearest = nearestWord(name, ["help", ...options.map(({ long }) => long?.slice(2) ?? "")]);
  if (nearest !== undefined) return `Did you mean --${nearest}? See --help for all.`;
  const variable = name.replaceAll("-", "_").toUpperCase();
  const known = Object.values(OPTIONS).some(({ environment }) => environment.includes(variable));
  return known ? `Set ${variable} in the environment instead.` : "See --help for all.";
};

/** @throws UsageError for an unknown flag, and names the nearest */
export const flagsOf = (command: Command): Flags => {
  const [other] = command.args;
  if (other?.startsWith("-") === true) {
    const [name = ""] = other.split("=");
    throw new UsageError(`There is no option ${name}. ${adviceFor(name.replace(/^-+/, ""), command)}`);
  }
  if (other !== undefined)
    throw new UsageError(
      `Unexpected argument '${other}'. Options start with --; see --help. ` +
        "npm takes those for itself that don't follow a -- of their own: npm start -- --port 8124.",
    );
  const given = ROWS.flatMap(([name, row]) => {
    const key = command.options.find(({ long }) => long === `--${row.flag}`)?.attributeName() ?? "";
    if (command.getOptionValueSource(key) !== "cli") return [];
    const value: unknown = command.getOptionValue(key);
    if (typeof value === "string" && value !== "") return [[name, value]];
    if (row.switch) return [[name, "true"]];
    const example = `--${row.flag} ${row.default ?? "value"}`;
    throw new UsageError(`--${row.flag} needs a value, for example: ${example}`);
  });
  return Object.fromEntries(given) as Flags;
};
