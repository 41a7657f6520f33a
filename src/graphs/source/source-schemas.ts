import { dirname, resolve } from "node:path";
import type { Logger } from "../../platform/lib/logger.ts";
import { within } from "../../platform/lib/within.ts";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { messageOf, readGraphConfig, type GraphEntry } from "../project/langgraph-json.ts";
import { cacheFolderOf, createExtractionCache } from "./cache.ts";
import {
  startExtraction,
  type ExtractionProcess,
  type Extraction,
  type ExtractionRequest,
  type SourceSchemas,
} from "./extraction-process.ts";

/** By namespace; `""` is the graph itself. */
export type GraphSourceSchemas = ReadonlyMap<string, SourceSchemas>;

export interface SourceReaderOptions {
  /** The program that reads; undefined: only the cache is used. */
  entry: URL | undefined;
  configPath: string;
  projectKeys?: ProjectKeys | undefined;
  /** For writing. `node_modules/.cache` is read, too. */
  cacheFolder: string;
  patienceMs?: number;
  logger: Logger;
}

/** A form waits this long. Earlier answers are marked `provisional`. */
const PATIENCE_MS = 2_000;
/** A repeated extraction is likely to fail again. */
const RETRY_MS = 60_000;

const NOTHING: GraphSourceSchemas = new Map();

/** @param folder of langgraph.json, absolute */
export const requestOf = (folder: string, entries: readonly GraphEntry[]): ExtractionRequest => ({
  folder,
  entries: entries.map(({ id, file, exportName }) => ({ id, file, exportName })),
});

const foldersOf = (folder: string, cacheFolder: string): string[] => [
  cacheFolder,
  ...[cacheFolderOf(folder)].filter((each) => each !== undefined),
];

/** Whether a server without a compiler finds these schemas in the cache. */
export const areSchemasKept = async (
  { configPath, cacheFolder }: Pick<SourceReaderOptions, "configPath" | "cacheFolder">,
  entries: readonly GraphEntry[],
): Promise<boolean> => {
  const folder = dirname(resolve(configPath));
  const cache = createExtractionCache(foldersOf(folder, cacheFolder));
  return (await cache.read(requestOf(folder, entries), true)) !== undefined;
};

export const createSourceReader = (options: SourceReaderOptions) => {
  const { entry, logger, patienceMs = PATIENCE_MS } = options;
  const folder = dirname(resolve(options.configPath));
  const cache = createExtractionCache(foldersOf(folder, options.cacheFolder));
  let running: ExtractionProcess | undefined;
  let isClosed = false;
  let reading: Promise<ReadonlyMap<string, GraphSourceSchemas> | undefined> | undefined;
  let isReading = false;
  let failedAt: number | undefined;

  const extracted = async (request: ExtractionRequest): Promise<Extraction | undefined> => {
    const kept = await cache.read(request, entry === undefined);
    if (kept !== undefined || isClosed || entry === undefined) return kept;
    const startedAt = performance.now();
    running = startExtraction(entry, request);
    const extraction = await running.extraction;
    running = undefined;
    logger.debug({ ms: Math.round(performance.now() - startedAt) }, "schemas were read from source");
    for (const [id, message] of extraction.failures) {
      logger.warn({ graph_id: id }, `the schemas of a graph can't be read from source: ${message}`);
    }
    if (extraction.isComplete) {
      await cache
        .write(request, extraction)
        .catch((error: unknown) =>
          logger.warn(
            { reason: messageOf(error) },
            "schemas from source can't be cached, so each start reads them again (docs/graphs.md: Schemas of graphs)",
          ),
        );
    }
    return extraction;
  };

  const begin = (): Promise<ReadonlyMap<string, GraphSourceSchemas> | undefined> => {
    if (failedAt !== undefined && Date.now() - failedAt > RETRY_MS) {
      failedAt = undefined;
      reading = undefined;
    }
    if (reading === undefined) {
      isReading = true;
      reading = read().finally(() => (isReading = false));
    }
    return reading;
  };

  const read = async (): Promise<ReadonlyMap<string, GraphSourceSchemas> | undefined> => {
    try {
      const { entries } = await readGraphConfig(options.configPath, options.projectKeys);
      const extraction = await extracted(requestOf(folder, entries));
      return extraction && new Map(extraction.graphs.map(([id, schemas]) => [id, new Map(schemas)]));
    } catch (error) {
      if (!isClosed) logger.warn(`schemas can't be read from source: ${messageOf(error)}`);
      failedAt = Date.now();
      return undefined;
    }
  };

  return {
    readAhead: (): void => void begin(),
    /** Whether a later answer may differ. */
    get isReading(): boolean {
      return isReading;
    },
    /** Undefined while unknown or after a failure; an empty map if the source says nothing. Never rejects. */
    async of(graphId: string): Promise<GraphSourceSchemas | undefined> {
      const graphs = await within(patienceMs, begin()).catch(() => undefined);
      return graphs && (graphs.get(graphId) ?? NOTHING);
    },
    close(): void {
      isClosed = true;
      running?.kill();
    },
  };
};

export type SourceReader = ReturnType<typeof createSourceReader>;
