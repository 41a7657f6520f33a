import type { Command } from "commander";
import type { Option } from "../platform/config/option.ts";
import { OPTIONS } from "../platform/config/options.ts";
import { PROJECT_VARIABLES } from "../platform/config/project-keys.ts";
import type { Flags } from "../platform/config/resolve.ts";
import { UsageError } from "../platform/domain/errors.ts";
import { ownField } from "../platform/lib/names.ts";
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

interface HelpOptions {
  listsEnvironment?: boolean;
  /** A command's own defaults, by environment variable. */
  defaults?: Readonly<Record<string, string>>;
  own?: readonly (readonly [flags: string, description: string])[];
}

const COLUMN = 28;

const line = (left: string, description: string): string =>
  left.length < COLUMN - 2
    ? `  ${left.padEnd(COLUMN - 2)}${description}`
    : `  ${left}\n${" ".repeat(COLUMN)}${description}`;

const WITHOUT_ENVIRONMENT =
  "Environment: --help --environment lists the variables that have no flag; docs/configuration.md explains them.";

export const optionsText = ({
  listsEnvironment = false,
  defaults = {},
  own = [],
}: HelpOptions = {}): string => {
  const rows = Object.values(OPTIONS) as Option<unknown>[];
  const described = (row: Option<unknown>): string => {
    const usual = row.environment.map((name) => ownField(defaults, name)).find(Boolean) ?? row.default ?? "";
    const hasDefault = !row.switch && row.default !== undefined && usual !== "";
    return hasDefault ? `${row.description} Default: ${usual}` : row.description;
  };
  const environment = [
    "Environment",
    ...rows
      .filter((row) => row.flag === undefined)
      .map((row) => line(row.environment.join(", "), described(row))),
    line(
      PROJECT_VARIABLES.join(", "),
      "As JSON, keys of langgraph.json (MOUNT_PREFIX: a path); they win over the file.",
    ),
  ];
  return [
    "Options (the environment may set an option by the name in brackets)",
    ...own.map(([flags, description]) => line(flags, description)),
    ...rows
      .filter((row) => row.flag !== undefined)
      .map((row) =>
        line(
          `--${row.flag}${row.shortFlag === undefined ? "" : `, -${row.shortFlag}`}${row.switch ? "" : " <value>"}`,
          `${described(row)} [${row.environment.join(", ")}]`,
        ),
      ),
    line("--help, -h", "Print this."),
    line("--environment", "Print this with the variables of the environment."),
    line("--version, -v", "Print the version."),
    "",
    ...(listsEnvironment ? environment : [WITHOUT_ENVIRONMENT]),
    "",
  ].join("\n");
};

export const helpText = (options: HelpOptions = {}): string => `threadloom start: the server

Usage: threadloom start [options]

Examples
  $ threadloom start --port 8124
  $ DATABASE_URL=postgresql://… threadloom start --workers auto

${optionsText(options)}`;
