import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

/**
 * Path and digest of each source file. A package.json stands for all files of its package, because its version changes
 * with them.
 */
export type Origins = [file: string, digest: string][];

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
