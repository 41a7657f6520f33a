import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

/**
 * What an extraction was made from: absolute path and digest of each file of the project. A package stands for its files by
 * its package.json, whose version changes with them; there are hundreds of files, which nobody edits.
 */
export type Origins = [file: string, digest: string][];

const BYTE_ORDER_MARK = /^\uFEFF/;

export const digestOf = (text: string): string =>
  createHash("sha256").update(text.replace(BYTE_ORDER_MARK, "")).digest("hex");

const PACKAGE = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** The package.json of the package that a file belongs to; undefined for a file of the project. */
export const packageFileOf = (file: string): string | undefined => {
  const folder = PACKAGE.exec(file)?.[1];
  return folder === undefined ? undefined : `${folder}/package.json`;
};

/**
 * Whether every file is as it was.
 * @param mayLackPackages packages that are not there count as unchanged: what only types came from, an image leaves out
 */
export const areUnchanged = async (origins: Origins, mayLackPackages = false): Promise<boolean> => {
  for (const [file, digest] of origins) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined && mayLackPackages && PACKAGE.test(file)) continue;
    if (digestOf(text ?? "") !== digest) return false;
  }
  return true;
};
