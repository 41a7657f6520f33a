import { writeFile } from "node:fs/promises";
import { Command } from "commander";
import { parseConfig } from "../../platform/config/config.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { graphConfigFileOf, mergeEnvironments } from "../../platform/config/resolve.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { commandLogger } from "../flags.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import type { CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom openapi --output openapi.json
  $ threadloom openapi | npx openapi-typescript

It equals /openapi.json of a running server, but needs no server and no database. It leaves out what langgraph.json disables.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

export const create: CreateCommand = ({ environment, write, note }) =>
  new Command("openapi")
    .description("Prints the description of the API, as OpenAPI 3.1 in JSON.")
    .option("--config <path>", "path of langgraph.json")
    .option("--output <file>", "write it to this file")
    .addHelpText("after", EXAMPLES)
    .action(async ({ config: path, output }: { config?: string; output?: string }) => {
      const logger = commandLogger("warn", note);
      const file = graphConfigFileOf(environment, path);
      const project = await readGraphConfig(file, projectKeysIn(environment));
      const config = parseConfig(
        { graphConfigFile: file },
        mergeEnvironments(project.environment, environment),
      );
      const { apiDocument } = await import("../../server/app/api-document.ts");
      const text = `${JSON.stringify(await apiDocument(config, project, logger), null, 2)}\n`;
      if (output === undefined) return write(text);
      await writeFile(output, text).catch((error: Error) => {
        throw new StartError(`${output} can't be written: ${error.message}.`, { cause: error });
      });
      note(`Written to ${output}.\n`);
    });
