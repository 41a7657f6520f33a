import { ownField } from "../lib/names.ts";
import type { Option } from "./option.ts";
import { OPTIONS } from "./options.ts";
import { PROJECT_VARIABLES } from "./project-keys.ts";

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
