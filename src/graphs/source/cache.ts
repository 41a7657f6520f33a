import { createHash } from "node:crypto";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { newId } from "../../platform/lib/ids.ts";
import { ensureOwnFolder } from "../../platform/lib/own-folder.ts";
import type { Extraction, ExtractionRequest, Origins } from "./extraction-process.ts";

const BYTE_ORDER_MARK = /^\uFEFF/;

export const digestOf = (text: string): string =>
  createHash("sha256").update(text.replace(BYTE_ORDER_MARK, "")).digest("hex");

const PACKAGE = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** Undefined for a file of the project. */
export const packageFileOf = (file: string): string | undefined => {
  const folder = PACKAGE.exec(file)?.[1];
  return folder === undefined ? undefined : `${folder}/package.json`;
};

/** @param mayLackPackages missing packages count as unchanged: an image leaves out packages of types */
export const areUnchanged = async (origins: Origins, mayLackPackages = false): Promise<boolean> => {
  for (const [file, digest] of origins) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined && mayLackPackages && PACKAGE.test(file)) continue;
    if (digestOf(text ?? "") !== digest) return false;
  }
  return true;
};

/** Increase it when the same source gives other schemas. */
const FORMAT = 1;
/** Twice the limit of an extraction. */
const BYTES_AT_MOST = 16_000_000;
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

/** `threadloom schemas` writes to this folder for an image. Undefined without node_modules. */
export const cacheFolderOf = (folder: string): string | undefined => {
  const packages = join(folder, "node_modules");
  if (existsSync(packages)) return join(packages, ".cache", "threadloom");
  return dirname(folder) === folder ? undefined : cacheFolderOf(dirname(folder));
};

/**
 * One extraction of a project, valid while its source files are unchanged.
 * @param folders all are read, the first is written; empty: nothing is kept
 */
export const createExtractionCache = (folders: readonly string[]) => {
  const nameOf = ({ folder }: ExtractionRequest): string =>
    `schemas-${digestOf(folder).slice(0, DIGEST_CHARACTERS)}.json`;

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
      // A damaged file counts as missing.
      return undefined;
    }
  };

  return {
    async read(request: ExtractionRequest, mayLackPackages = false): Promise<Extraction | undefined> {
      for (const folder of folders) {
        const extraction = await readOne(join(folder, nameOf(request)), request, mayLackPackages);
        if (extraction !== undefined) return extraction;
      }
      return undefined;
    },

    /** @throws errors of the file system */
    async write(request: ExtractionRequest, extraction: Extraction): Promise<void> {
      const [folder] = folders;
      if (folder === undefined) return;
      const file = join(folder, nameOf(request));
      await ensureOwnFolder(folder);
      // Renamed when complete, because another server may read it.
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
