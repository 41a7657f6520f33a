import { OPTIONS } from "../../platform/config/options.ts";
import { graphConfigFileOf } from "../../platform/config/config.ts";
import { projectKeysIn, type ProjectKeys } from "../../platform/config/project-keys.ts";
import { UsageError } from "../../platform/domain/errors.ts";
import { databasePlaceOf, type DatabaseFlags, type Environment } from "../own-database.ts";

export interface ImportFlags extends DatabaseFlags {
  from: string;
  schema?: string | undefined;
  graph?: string | undefined;
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

export const importCommandOf = (flags: ImportFlags, environment: Environment): ImportCommand => {
  const { schema: url, expected } = OPTIONS.databaseUrl;
  if (!url.safeParse(flags.from).success) throw new UsageError(`--from must be ${expected}.`);
  const target = databasePlaceOf(flags, environment);
  return {
    from: flags.from,
    schema: flags.schema ?? "public",
    databaseUrl: target.url,
    databaseSchema: target.schema,
    dataFolder: target.dataFolder,
    threadId: flags.thread,
    graphId: flags.graph,
    graphConfigFile: flags.config ?? graphConfigFileOf([], environment),
    projectKeys: projectKeysIn(environment),
    dryRun: flags.dryRun === true,
  };
};
