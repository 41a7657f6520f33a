import { resolve } from "node:path";
import { parseTsconfig } from "get-tsconfig";

/** What the parser has looked at, by what it keeps in the map that it is given. */
const LOOKED_AT = /^(?:readFileSync:(?<read>.+):utf8|existsSync:(?<sought>.+\.json))$/;

/**
 * Absolute paths of the files that a tsconfig.json is made of: itself, those that it extends, and those that they extend; files that
 * are sought and missing, too.
 */
export const tsconfigFilesOf = (file: string): string[] => {
  const path = resolve(file);
  const looks = new Map<string, string>();
  try {
    parseTsconfig(path, looks);
  } catch {
    // It is broken. What was read until there is known.
  }
  const found = [...looks.keys()].flatMap((look) => {
    const { read, sought } = LOOKED_AT.exec(look)?.groups ?? {};
    return read ?? sought ?? [];
  });
  return [...new Set([path, ...found])];
};
