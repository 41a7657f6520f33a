import { parseArgs } from "node:util";
import { OPTIONS } from "../config/options.ts";
import { graphConfigFileOf } from "../config/config.ts";
import { projectKeysIn, type ProjectKeys } from "../config/project-keys.ts";
import { StartError } from "../domain/errors.ts";

export interface ImportCommand {
  help: boolean;
  from: string;
  schema: string;
  /** Undefined: the embedded PostgreSQL. */
  databaseUrl: string | undefined;
  /** The schema of this server's tables. */
  databaseSchema: string;
  dataFolder: string;
  threadId: string | undefined;
  graphId: string | undefined;
  /** Path of langgraph.json, which knows the graphs. */
  graphConfigFile: string;
  /** What the environment says of it. */
  projectKeys: ProjectKeys;
  dryRun: boolean;
}

export const IMPORT_HELP = `Copies threads from a database that @langchain/langgraph-checkpoint-postgres filled.

  npm run import -- --from postgresql://user:password@host:5432/database

  --from <url>          The database to read. It is not changed.
  --schema <name>       The schema of its tables. Default: public
  --database-url <url>  This server's database, not through a pooler in transaction mode. Default: DATABASE_DIRECT_URL,
                        else DATABASE_URL, else the embedded PostgreSQL
  --database-schema <name>  The schema of this server's tables. Default: DATABASE_SCHEMA, else threadloom
  --data <folder>       Folder of the embedded PostgreSQL. Default: .threadloom
  --graph <id>          The graph of these threads, as langgraph.json calls it: the source doesn't say. Without it they
                        get one with their next run. Was it a wrong one, run it again with the right one
  --config <path>       The langgraph.json that --graph is looked up in. Default: LANGGRAPH_CONFIG, else langgraph.json
  --thread <id>         Only this thread
  --dry-run             Say what there is to do, and make and write nothing
  --help, -h            Print this

It may be stopped at any time, and run again: what is here already is left as it is, and only what is new is copied.
`;

/** Throws StartError with one sentence that names the option. */
export const parseImportCommand = (
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ImportCommand => {
  const { values } = parse(argv);
  const help = values.help === true;
  const from = values.from ?? "";
  if (!help && from === "") {
    throw new StartError(
      "--from is missing: name the database to read, as postgresql://user:password@host/database.",
    );
  }
  const { databaseUrl, databaseDirectUrl, databaseSchema, dataFolder } = OPTIONS;
  const given = (names: readonly string[]): string | undefined =>
    names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
  const target =
    values["database-url"] ?? given(databaseDirectUrl.environment) ?? given(databaseUrl.environment);
  for (const [name, url] of [["--from", from] as const, ["--database-url", target] as const]) {
    if (url === undefined || (help && url === "")) continue;
    if (!databaseUrl.schema.safeParse(url).success)
      throw new StartError(`${name} must be ${databaseUrl.expected}.`);
  }
  const ownSchema = databaseSchema.schema.safeParse(
    values["database-schema"] ?? given(databaseSchema.environment) ?? databaseSchema.default,
  );
  if (!ownSchema.success) throw new StartError(`--database-schema must be ${databaseSchema.expected}.`);
  return {
    help,
    from,
    schema: values.schema ?? "public",
    databaseUrl: target,
    databaseSchema: ownSchema.data,
    dataFolder: values.data ?? given(dataFolder.environment) ?? dataFolder.default ?? "",
    threadId: values.thread,
    graphId: values.graph,
    graphConfigFile: values.config ?? graphConfigFileOf([], environment),
    projectKeys: projectKeysIn(environment),
    dryRun: values["dry-run"] === true,
  };
};

const parse = (argv: readonly string[]) => {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...argv],
      options: {
        from: text,
        schema: text,
        "database-url": text,
        "database-schema": text,
        data: text,
        graph: text,
        config: text,
        thread: text,
        "dry-run": { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new StartError(`${(error as Error).message.split(". ")[0] ?? ""}. See --help.`, { cause: error });
  }
};
