import { StartError, UsageError } from "../domain/errors.ts";
import type { Option } from "./option.ts";
import { OPTIONS, type Config, type OptionName } from "./options.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export type Flags = { readonly [Name in OptionName]?: string | undefined };

/** Names of flags in error messages. Default: the name on the command line, such as `--port`. */
export type FlagNames = { readonly [Name in OptionName]?: string };

/** Later environments win. An empty variable counts as not set. */
export const mergeEnvironments = (...environments: readonly Environment[]): Record<string, string> => {
  const merged = new Map<string, string>();
  for (const [name, value] of environments.flatMap(Object.entries<string | undefined>))
    if (value !== undefined && (value !== "" || !merged.has(name))) merged.set(name, value);
  return Object.fromEntries(merged);
};

/** Some commands have flags for options that `start` takes only from the environment, e.g. --database-url. */
const flagOf = ({ flag, environment }: Option<unknown>): string =>
  `--${flag ?? environment[0]?.toLowerCase().replaceAll("_", "-")}`;

/** A flag wins over the environment, and the environment over the default. An empty variable counts as not set. */
const given = (
  option: Option<unknown>,
  flag: string | undefined,
  environment: Environment,
  flagName = flagOf(option),
): { value: string | undefined; source: string } => {
  if (flag !== undefined) return { value: flag, source: flagName };
  const source = option.environment.find((name) => (environment[name] ?? "") !== "");
  return { value: source === undefined ? option.default : environment[source], source: source ?? "" };
};

/** parseConfig sets the two defaults that depend on other options. */
export type Resolved<Names extends OptionName = OptionName> = {
  readonly [Name in Names]:
    Config[Name] | (Name extends "logFormat" | "blockedLoopSeconds" ? undefined : never);
};

/**
 * @throws StartError with one sentence that names the flag or the variable
 */
export const resolveOptions = <Name extends OptionName>(
  names: readonly Name[],
  flags: Flags,
  environment: Environment,
  flagNames: FlagNames = {},
): Resolved<Name> => {
  const entries = names.map((name) => {
    const option: Option<unknown> = OPTIONS[name];
    const { value, source } = given(option, flags[name], environment, flagNames[name]);
    if (value === undefined) return [name, undefined];
    const parsed = option.schema.safeParse(value);
    if (!parsed.success) {
      const actual = option.secret ? "" : `, not '${value}'`;
      throw new (source.startsWith("--") ? UsageError : StartError)(
        `${source} must be ${option.expected}${actual}.`,
      );
    }
    return [name, Array.isArray(parsed.data) ? Object.freeze(parsed.data) : parsed.data];
  });
  return Object.fromEntries(entries) as Resolved<Name>;
};

/** Read before the other options, because langgraph.json may name a file with more environment variables. */
export const graphConfigFileOf = (environment: Environment, flag?: string): string =>
  resolveOptions(["graphConfigFile"], { graphConfigFile: flag }, environment).graphConfigFile;
