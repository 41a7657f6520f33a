import { resolve } from "node:path";
import { Command } from "commander";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { graphConfigFileOf, type Flags } from "../../platform/config/resolve.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { fileExists } from "../../platform/lib/file-exists.ts";
import { DEFAULTS, isAttended } from "../dev/launch.ts";
import { EXIT_CODES, NotDoneError } from "../run-command.ts";
import { flagsOf, onServer } from "../server-flags.ts";
import type { CommandSurroundings, CreateCommand } from "../command.ts";

const NO_CONFIG = (path: string): string =>
  `There is no ${path}. It names the graphs of your project; write one like this beside its package.json:

  {
    "graphs": { "agent": "./src/agent.ts:graph" },
    "env": ".env"
  }

'./src/agent.ts' is a file that exports the graph, 'graph' the name of the export. One elsewhere: threadloom dev --config <path>.`;

const EXAMPLES = `
Examples:
  $ threadloom dev
  $ threadloom dev --no-open
  $ threadloom dev --port 8124 --workers 2

Starts the server as 'threadloom start' does, with graphs in their own process (--workers 1). It watches the files of the graphs,
langgraph.json, the file of its 'env', and tsconfig.json. After a change, new runs use the new code; active runs keep their code.
If the new code can't be loaded, the server reports the error and keeps the old code.
`;

const run = async (
  flags: Flags,
  opens: boolean | undefined,
  { environment, terminal }: CommandSurroundings,
): Promise<void> => {
  const file = graphConfigFileOf(environment, flags.graphConfigFile);
  if (projectKeysIn(environment)["graphs"] === undefined && !(await fileExists(file)))
    throw new StartError(NO_CONFIG(resolve(file)));
  const { launch } = await import("../dev/launch.ts");
  const code = await launch(flags, opens ?? isAttended(environment, terminal));
  if (code === EXIT_CODES.done) return;
  throw new NotDoneError(code === EXIT_CODES.wrongUsage ? code : EXIT_CODES.notDone);
};

export const create: CreateCommand = (surroundings) => {
  const command = onServer(new Command("dev"), DEFAULTS, EXAMPLES)
    .option("--open", "open the console in your browser (default: at a terminal, but not in CI or over SSH)")
    .option("--no-open", "do not open the console")
    .option("--no-browser", "the same, as in langgraphjs dev");
  return command
    .description("Starts the server for development: graphs are reloaded when their files change.")
    .action(({ open, browser }: { open?: boolean; browser: boolean }) =>
      run(flagsOf(command), browser ? open : false, surroundings),
    );
};
