import { resolve } from "node:path";
import { Command } from "commander";
import { graphConfigFileOf, readCommandLine } from "../../platform/config/config.ts";
import { optionsText } from "../../platform/config/help.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { fileExists } from "../../platform/lib/file-exists.ts";
import { DEFAULTS } from "../dev/defaults.ts";
import { isAttended, openingIn } from "../dev/opening.ts";
import { EXIT_CODES, NotDoneError } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "./command.ts";

const NO_CONFIG = (path: string): string =>
  `There is no ${path}. It names the graphs of your project; write one like this beside its package.json:

  {
    "graphs": { "agent": "./src/agent.ts:graph" },
    "env": ".env"
  }

'./src/agent.ts' is a file that exports the graph, 'graph' the name of the export. One elsewhere: threadloom dev --config <path>.`;

const HELP = `threadloom dev: the server for development

Usage: threadloom dev [options]

Starts the server as 'threadloom start' does, with graphs in their own process (--workers 1). It watches the files of the graphs,
langgraph.json, the file of its 'env', and tsconfig.json. After a change, new runs use the new code; active runs keep their code.
If the new code can't be loaded, the server reports the error and keeps the old code.

Examples
  $ threadloom dev
  $ threadloom dev --no-open
  $ threadloom dev --port 8124 --workers 2

`;

const OWN_OPTIONS = [
  [
    "--open",
    "Open the console in your browser. Default: at a terminal of this machine, but not in CI or over SSH.",
  ],
  ["--no-open", "Do not open the console."],
] as const;

const wholeHelp = (listsEnvironment = false): string =>
  HELP + optionsText({ listsEnvironment, defaults: DEFAULTS, own: OWN_OPTIONS });

const run = async (given: string[], { environment, terminal, write }: CommandSurroundings): Promise<void> => {
  const { opens, others: argv } = openingIn(given);
  const { help, helpWithEnvironment } = readCommandLine(argv);
  if (help) return write(wholeHelp(helpWithEnvironment));
  const file = graphConfigFileOf(argv, environment);
  if (projectKeysIn(environment)["graphs"] === undefined && !(await fileExists(file)))
    throw new StartError(NO_CONFIG(resolve(file)));
  const { launch } = await import("../dev/launch.ts");
  const isOpened = opens ?? isAttended(environment, terminal);
  const code = await launch(argv, isOpened);
  if (code === EXIT_CODES.done) return;
  throw new NotDoneError(code === EXIT_CODES.wrongUsage ? code : EXIT_CODES.notDone);
};

export const createDev: CreateCommand = (surroundings) =>
  new Command("dev")
    .description("Starts the server for development: graphs are reloaded when their files change.")
    .helpOption(false)
    .configureHelp({ formatHelp: () => wholeHelp() })
    .allowUnknownOption()
    .passThroughOptions()
    .argument("[options...]")
    .action((argv: string[]) => run(argv, surroundings));
