import { Command } from "commander";
import { serverVersion } from "../platform/lib/package-versions.ts";
import type { CommandSurroundings, CreateCommand } from "./commands/command.ts";

interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** Loading all commands takes a second. */
  load(): Promise<CreateCommand>;
}

/** A new command is a file in `commands/` and a line here. */
const COMMANDS: readonly CommandEntry[] = [
  {
    name: "new",
    summary: "Create a project with a working graph.",
    load: async () => (await import("./commands/new.ts")).createNew,
  },
  {
    name: "dev",
    summary: "Start the server, and reload graphs when their files change.",
    load: async () => (await import("./commands/dev.ts")).createDev,
  },
  {
    name: "start",
    summary: "Start the server.",
    load: async () => (await import("./commands/start.ts")).createStart,
  },
  {
    name: "doctor",
    summary: "Check everything that a start needs, and say what to fix.",
    load: async () => (await import("./commands/doctor.ts")).createDoctor,
  },
  {
    name: "keys",
    summary: "Create, list and revoke API keys.",
    load: async () => (await import("./commands/keys.ts")).createKeys,
  },
  {
    name: "migrate",
    summary: "Bring the tables up to date, or list pending migrations.",
    load: async () => (await import("./commands/migrate.ts")).createMigrate,
  },
  {
    name: "import",
    summary: "Copy threads from LangGraph's own Postgres saver.",
    load: async () => (await import("./commands/import.ts")).createImport,
  },
  {
    name: "runs",
    summary: "List, show, follow and cancel runs.",
    load: async () => (await import("./commands/runs.ts")).createRuns,
  },
  {
    name: "threads",
    summary: "List, show, follow and delete threads.",
    load: async () => (await import("./commands/threads.ts")).createThreads,
  },
  {
    name: "webhooks",
    summary: "Show the deliveries of webhooks, and send them again.",
    load: async () => (await import("./commands/webhooks.ts")).createWebhooks,
  },
  {
    name: "encryption",
    summary: "Show the encryption keys in use, and rotate to the newest.",
    load: async () => (await import("./commands/encryption.ts")).createEncryption,
  },
  {
    name: "dockerfile",
    summary: "Print a Dockerfile for this project.",
    load: async () => (await import("./commands/dockerfile.ts")).createDockerfile,
  },
  {
    name: "compose",
    summary: "Print a compose file for this project.",
    load: async () => (await import("./commands/compose.ts")).createCompose,
  },
  {
    name: "openapi",
    summary: "Print the description of the API.",
    load: async () => (await import("./commands/openapi.ts")).createOpenapi,
  },
  {
    name: "schemas",
    summary: "Read the schemas of graphs in advance.",
    load: async () => (await import("./commands/schemas.ts")).createSchemas,
  },
];

const EXAMPLES = `
Examples:
  $ threadloom new my-agent
  $ threadloom dev
  $ threadloom start
  $ threadloom start --port 8124 --workers auto
  $ threadloom keys create --name ci --scopes read,run
  $ threadloom help keys`;

const wantedOf = ([first, second]: readonly string[]): string | undefined =>
  first === "help" ? second : first;

/** Loads only the wanted command; the others have just names. */
export const createProgram = async (
  argv: readonly string[],
  surroundings: CommandSurroundings,
): Promise<Command> => {
  const program = new Command("threadloom")
    .description("The open, self-hosted Agent Server for LangGraph.js graphs.")
    .version(serverVersion(), "-v, --version", "Print the version.")
    .helpOption("-h, --help", "Print this, or the help of a command.")
    .helpCommand("help [command]", "Print the help of a command.")
    .enablePositionalOptions()
    .addHelpText("after", EXAMPLES);
  for (const { name, summary, load } of COMMANDS) {
    const command =
      wantedOf(argv) === name ? (await load())(surroundings) : new Command(name).allowUnknownOption();
    program.addCommand(command.summary(summary));
  }
  return program;
};
