import { dirname, resolve } from "node:path";
import { Command } from "commander";
import { StartError } from "../../platform/domain/errors.ts";
import { cacheFolderOf, createExtractionCache } from "../../graphs/source/cache.ts";
import { missingCompiler } from "../../graphs/source/compiler.ts";
import { startExtraction } from "../../graphs/source/extraction-process.ts";
import { requestOf } from "../../graphs/source/source-schemas.ts";
import { TYPESCRIPT } from "../../graphs/modules.ts";
import { graphConfigFileOf } from "../../platform/config/resolve.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import type { CommandSurroundings, CreateCommand } from "../command.ts";

const SCHEMA_PROCESS = new URL("../../server/app/schema-process-entry.js", import.meta.url);

const EXAMPLES = `
Examples:
  $ threadloom schemas
  $ threadloom schemas --config packages/agent/langgraph.json

A server reads the schemas after its start, and keeps them in .threadloom. This command writes them to node_modules/.cache, for
images with read-only files. Exit codes: 0 done, 1 not done, 2 wrong usage.`;

const fill = async (configPath: string, { write, note }: CommandSurroundings): Promise<void> => {
  const { entries } = await readGraphConfig(configPath);
  const missing = missingCompiler();
  if (missing !== undefined && !entries.some(({ file }) => TYPESCRIPT.test(file)))
    return write("No graph is in TypeScript, so there are no schemas to read.\n");
  if (missing !== undefined) throw new StartError(`${missing}.`);
  const folder = dirname(resolve(configPath));
  const kept = cacheFolderOf(folder);
  if (kept === undefined)
    throw new StartError(
      `There is no node_modules in ${folder} or above it for the schemas. Install the packages first.`,
    );
  const request = requestOf(folder, entries);
  const extraction = await startExtraction(SCHEMA_PROCESS, request).extraction;
  for (const [id, message] of extraction.failures)
    note(`threadloom schemas: graph '${id}' can't be read from source: ${message}\n`);
  if (!extraction.isComplete)
    throw new StartError("A module was not found, so no schemas were kept. Install the packages first.");
  await createExtractionCache([kept]).write(request, extraction);
  write(`Kept the schemas of ${extraction.graphs.length} of ${entries.length} graphs in ${kept}.\n`);
};

export const create: CreateCommand = (surroundings) =>
  new Command("schemas")
    .description("Reads the schemas of the graphs from their TypeScript source, and keeps them for servers.")
    .option("--config <path>", "path of langgraph.json")
    .addHelpText("after", EXAMPLES)
    .action(({ config }: { config?: string }) =>
      fill(graphConfigFileOf(surroundings.environment, config), surroundings),
    );
