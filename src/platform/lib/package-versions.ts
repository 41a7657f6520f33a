import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const versionIn = (file: string | URL): string =>
  (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;

/** Reads a file, so call it at start, not per request. */
export const serverVersion = (): string => versionIn(new URL("../../../package.json", import.meta.url));

export const packageVersion = (name: string): string =>
  versionIn(createRequire(import.meta.url).resolve(`${name}/package.json`));
