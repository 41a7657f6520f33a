import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { newId } from "../../platform/lib/ids.ts";
import { ensureOwnFolder } from "../../platform/lib/own-folder.ts";
import type { Extraction, ExtractionRequest } from "./extraction.ts";
import { areUnchanged, digestOf } from "./origins.ts";

/** Raised when the same source gives other schemas, so that a newer version of this server reads it anew. */
const FORMAT = 1;
/** Twice what an extraction may have. */
const BYTES_AT_MOST = 16_000_000;
/** Of one project: whoever changes between branches finds the schemas of each. */
const KEPT_AT_MOST = 4;
const DIGEST_CHARACTERS = 16;

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

/** Beside the project's packages, where `threadloom schemas` keeps them for an image. Undefined if there are none. */
export const cacheFolderOf = (folder: string): string | undefined => {
  const packages = join(folder, "node_modules");
  if (existsSync(packages)) return join(packages, ".cache", "threadloom");
  return dirname(folder) === folder ? undefined : cacheFolderOf(dirname(folder));
};

const shortDigestOf = (text: string): string => digestOf(text).slice(0, DIGEST_CHARACTERS);

/**
 * Keeps the last extractions of each project in files that are named by what was read, so that a server that starts again reads
 * no source. One holds as long as the files that it was made from are as they were; a file that can't be read counts as none.
 * @param folders each is read; the first is written to. Without one nothing is kept.
 */
export const createExtractionCache = (folders: readonly string[]) => {
  const prefixOf = (request: ExtractionRequest): string => `schemas-${shortDigestOf(request.folder)}-`;

  /** Paths of what is kept of a project in a folder, the newest first. */
  const filesOf = async (folder: string, request: ExtractionRequest): Promise<string[]> => {
    const names = await readdir(folder).catch(() => []);
    const prefix = prefixOf(request);
    const found = await Promise.all(
      names
        .filter((name) => name.startsWith(prefix) && name.endsWith(".json"))
        .map(async (name) => {
          const file = join(folder, name);
          return { file, at: (await stat(file).catch(() => undefined))?.mtimeMs ?? 0 };
        }),
    );
    return found.sort((one, other) => other.at - one.at).map(({ file }) => file);
  };

  const readOne = async (
    file: string,
    request: ExtractionRequest,
    mayLackPackages: boolean,
  ): Promise<Extraction | undefined> => {
    try {
      if ((await stat(file)).size > BYTES_AT_MOST) return undefined;
      const kept = keptSchema.parse(JSON.parse(await readFile(file, "utf8")));
      if (kept.request !== JSON.stringify(request)) return undefined;
      return (await areUnchanged(kept.extraction.origins, mayLackPackages)) ? kept.extraction : undefined;
    } catch {
      // It was cut, or something else has written it: the source says it again.
      return undefined;
    }
  };

  return {
    /** @param mayLackPackages see `areUnchanged` */
    async read(request: ExtractionRequest, mayLackPackages = false): Promise<Extraction | undefined> {
      for (const folder of folders)
        for (const file of (await filesOf(folder, request)).slice(0, KEPT_AT_MOST)) {
          const extraction = await readOne(file, request, mayLackPackages);
          if (extraction !== undefined) return extraction;
        }
      return undefined;
    },

    /** @throws what the file system says */
    async write(request: ExtractionRequest, extraction: Extraction): Promise<void> {
      const [folder] = folders;
      if (folder === undefined) return;
      const text = JSON.stringify({ format: FORMAT, request: JSON.stringify(request), extraction });
      const content = shortDigestOf(JSON.stringify([request, extraction.origins]));
      const file = join(folder, `${prefixOf(request)}${content}.json`);
      await ensureOwnFolder(folder);
      // Another server of this project may be reading it.
      const unfinished = `${file}.${newId()}`;
      try {
        await writeFile(unfinished, text);
        await rename(unfinished, file);
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
      const old = (await filesOf(folder, request)).slice(KEPT_AT_MOST);
      await Promise.all(old.map((each) => rm(each, { force: true })));
    },
  };
};
