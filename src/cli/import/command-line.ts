import { OPTIONS } from "../../platform/config/options.ts";
import { graphConfigFileOf } from "../../platform/config/config.ts";
import { projectKeysIn, type ProjectKeys } from "../../platform/config/project-keys.ts";
import { StartError } from "../../platform/domain/errors.ts";

export interface ImportFlags {
  from: string;
  schema?: string | undefined;
  databaseUrl?: string | undefined;
  databaseSchema?: string | undefined;
  data?: string | undefined;
  graph?: string | undefined;
  config?: string | undefined;
  thread?: string | undefined;
  dryRun?: true | undefined;
}

export interface ImportCommand {
  from: string;
  schema: string;
  /** Undefined: the embedded PostgreSQL. */
  databaseUrl: string | undefined;
  databaseSchema: string;
  dataFolder: string;
  threadId: string | undefined;
  graphId: string | undefined;
  graphConfigFile: string;
  projectKeys: ProjectKeys;
  dryRun: boolean;
}

export const importCommandOf = (
  flags: ImportFlags,
  environment: Readonly<Record<string, string | undefined>>,
): ImportCommand => {
  const { databaseUrl, databaseDirectUrl, databaseSchema, dataFolder } = OPTIONS;
  const given = (names: readonly string[]): string | undefined =>
    names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
  const target = flags.databaseUrl ?? given(databaseDirectUrl.environment) ?? given(databaseUrl.environment);
  for (const [name, url] of [["--from", flags.from] as const, ["--database-url", target] as const]) {
    if (url !== undefined && !databaseUrl.schema.safeParse(url).success)
      throw new StartError(`${name} must be ${databaseUrl.expected}.`);
  }
  const ownSchema = databaseSchema.schema.safeParse(
    flags.databaseSchema ?? given(databaseSchema.environment) ?? databaseSchema.default,
  );
  if (!ownSchema.success) throw new StartError(`--database-schema must be ${databaseSchema.expected}.`);
  return {
    from: flags.from,
    schema: flags.schema ?? "public",
    databaseUrl: target,
    databaseSchema: ownSchema.data,
    dataFolder: flags.data ?? given(dataFolder.environment) ?? dataFolder.default ?? "",
    threadId: flags.thread,
    graphId: flags.graph,
    graphConfigFile: flags.config ?? graphConfigFileOf([], environment),
    projectKeys: projectKeysIn(environment),
    dryRun: flags.dryRun === true,
  };
};
