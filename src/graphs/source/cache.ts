import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { newId } from "../../lib/ids.ts";
import type { Extraction, ExtractionRequest } from "./extraction.ts";
import { areUnchanged, digestOf } from "./origins.ts";

/** Raised when the same source gives other schemas, so that a newer version of this server reads it anew. */
const FORMAT = 1;
/** Twice what an extraction may have. */
const BYTES_AT_MOST = 16_000_000;

const keptSchema = z.object({
  format: z.literal(FORMAT),
  request: z.string(),
  extraction: z.custom<Extraction>(
    (value) =>
      typeof value === "object" &&
      value !== null &&
      "graphs" in value &&
      Array.isArray(value.graphs) &&
      "origins" in value &&
      Array.isArray(value.origins),
  ),
});

/** Beside the project's packages, as other tools do: whoever installs them anew removes it. Undefined if there are none. */
export const cacheFolderOf = (folder: string): string | undefined => {
  const packages = join(folder, "node_modules");
  if (existsSync(packages)) return join(packages, ".cache", "threadloom");
  return dirname(folder) === folder ? undefined : cacheFolderOf(dirname(folder));
};

/**
 * Keeps the last extraction of each project in a file, so that a server that starts again reads no source. What is kept
 * holds as long as the files that it was made from are as they were. Without a folder nothing is kept.
 */
export const createExtractionCache = (folder: string | undefined) => {
  if (folder === undefined) return { read: async () => undefined, write: async () => undefined };
  const fileOf = (request: ExtractionRequest): string =>
    join(folder, `schemas-${digestOf(request.folder).slice(0, 16)}.json`);

  return {
    /** @param mayLackPackages see `areUnchanged` */
    async read(request: ExtractionRequest, mayLackPackages = false): Promise<Extraction | undefined> {
      try {
        const file = fileOf(request);
        if ((await stat(file)).size > BYTES_AT_MOST) return undefined;
        const kept = keptSchema.parse(JSON.parse(await readFile(file, "utf8")));
        if (kept.request !== JSON.stringify(request)) return undefined;
        return (await areUnchanged(kept.extraction.origins, mayLackPackages)) ? kept.extraction : undefined;
      } catch {
        // None is there, or it was cut: the source says it again.
        return undefined;
      }
    },

    /** @throws what the file system says */
    async write(request: ExtractionRequest, extraction: Extraction): Promise<void> {
      const file = fileOf(request);
      await mkdir(folder, { recursive: true });
      // Another server of this project may be reading it.
      const unfinished = `${file}.${newId()}`;
      try {
        await writeFile(
          unfinished,
          JSON.stringify({ format: FORMAT, request: JSON.stringify(request), extraction }),
        );
        await rename(unfinished, file);
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
    },
  };
};
