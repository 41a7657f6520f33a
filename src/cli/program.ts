import { Command } from "commander";
import { serverVersion } from "../platform/lib/package-versions.ts";
import type { CommandSurroundings, CreateCommand } from "./command.ts";

/** Loading all commands takes a second. A new command is a file in `commands/` and a line here. */
const COMMANDS: readonly (readonly [
  name: string,
  summary: string,
  load: () => Promise<{ create: CreateCommand }>,
])[] = [
  ["new", "Create a project with a working graph.", () => import("./commands/new.ts")],
  ["dev", "Start the server, and reload graphs when their files change.", () => import("./commands/dev.ts")],
  ["start", "Start the server.", () => import("./commands/start.ts")],
  [
    "doctor",
    "Check everything that a start needs, and say what to fix.",
    () => import("./commands/doctor.ts"),
  ],
  ["keys", "Create, list and revoke API keys.", () => import("./commands/keys.ts")],
  [
    "migrate",
    "Bring the tables up to date, or list pending migrations.",
    () => import("./commands/migrate.ts"),
  ],
  ["import", "Copy threads from LangGraph's own Postgres saver.", () => import("./commands/import.ts")],
  ["runs", "List, show, follow and cancel runs.", () => import("./commands/runs.ts")],
  ["threads", "List, show, follow and delete threads.", () => import("./commands/threads.ts")],
  [
    "webhooks",
    "Show the deliveries of webhooks, and send them again.",
    () => import("./commands/webhooks.ts"),
  ],
  [
    "encryption",
    "Show the encryption keys in use, and rotate to the newest.",
    () => import("./commands/encryption.ts"),
  ],
  ["dockerfile", "Print a Dockerfile for this project.", () => import("./commands/dockerfile.ts")],
  ["compose", "Print a compose file for this project.", () => import("./commands/compose.ts")],
  ["openapi", "Print the description of the API.", () => import("./commands/openapi.ts")],
  ["schemas", "Read the schemas of graphs in advance.", () => import("./commands/schemas.ts")],
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
  for (const [name, summary, load] of COMMANDS) {
    const command =
      wantedOf(argv) === name ? (await load()).create(surroundings) : new Command(name).allowUnknownOption();
    program.addCommand(command.summary(summary));
  }
  return program;
};
