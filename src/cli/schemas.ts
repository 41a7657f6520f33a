/**
 * Process entry of `npm run schemas`: reads the schemas of the project's graphs from their source and keeps them, so that no
 * server has to. For images, whose files can't be written any more once they run.
 */
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { StartError } from "../domain/errors.ts";
import { cacheFolderOf, createExtractionCache } from "../graphs/source/cache.ts";
import { startExtraction } from "../graphs/source/extraction-process.ts";
import { GraphLoadError, readGraphConfig } from "../project/langgraph-json.ts";

const SCHEMA_PROCESS = new URL("../app/schema-process-entry.js", import.meta.url);
const HELP = `Reads the schemas of the graphs from their TypeScript source, and keeps them for servers that start later.

Usage: npm run schemas -- [--config langgraph.json]
`;

const fill = async (configPath: string): Promise<void> => {
  const folder = dirname(resolve(configPath));
  const kept = cacheFolderOf(folder);
  if (kept === undefined)
    throw new StartError(`There is no node_modules in ${folder}, or above it, to keep schemas in.`);
  const { entries } = await readGraphConfig(configPath);
  const request = { folder, entries: entries.map(({ id, file, exportName }) => ({ id, file, exportName })) };
  const extraction = await startExtraction(SCHEMA_PROCESS, request).extraction;
  for (const [id, message] of extraction.failures)
    process.stderr.write(`threadloom schemas: graph '${id}' can't be read from source: ${message}\n`);
  if (!extraction.isComplete)
    throw new StartError("A module was not found, so nothing is kept: install the packages first.");
  await createExtractionCache(kept).write(request, extraction);
  process.stdout.write(
    `Kept the schemas of ${extraction.graphs.length} of ${entries.length} graphs in ${kept}.\n`,
  );
};

try {
  const { values } = parseArgs({ options: { config: { type: "string" }, help: { type: "boolean" } } });
  if (values.help === true) process.stdout.write(HELP);
  else await fill(values.config ?? process.env["LANGGRAPH_CONFIG"] ?? "langgraph.json");
} catch (error) {
  const isExplained = error instanceof StartError || error instanceof GraphLoadError;
  const text = error instanceof Error ? (isExplained ? error.message : error.stack) : String(error);
  process.stderr.write(`threadloom schemas: ${text}\n`);
  process.exitCode = 1;
}
