import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseTsconfig } from "get-tsconfig";

/** What the parser has looked at, by what it keeps in the map that it is given. */
const CHECKED = /^(?:readFileSync:(?<read>.+):utf8|existsSync:(?<sought>.+\.json))$/;

/**
 * Absolute paths of the files that a tsconfig.json is made of: itself, those that it extends, and those that they extend; files that
 * are sought and missing, too.
 */
export const tsconfigFilesOf = (file: string): string[] => {
  const path = resolve(file);
  const messages = new Map<string, string>();
  try {
    parseTsconfig(path, messages);
  } catch {
    // It is broken. What was read until there is known.
  }
  const found = [...messages.keys()].flatMap((message) => {
    const { read, sought } = CHECKED.exec(message)?.groups ?? {};
    return read ?? sought ?? [];
  });
  return [...new Set([path, ...found])];
};

interface SyntaxFault {
  text: string;
  location: { line: number; column: number } | null;
}

/** Where a file is no JSON, with comments and trailing commas, as a tsconfig.json may have them. */
const syntaxFault = async (file: string): Promise<string | undefined> => {
  const tsconfigRaw = await readFile(file, "utf8").catch(() => "");
  const { transformSync } = await import("esbuild");
  try {
    transformSync("", { loader: "ts", tsconfigRaw, logLevel: "silent" });
    return undefined;
  } catch (error) {
    const [fault] = (error as { errors?: SyntaxFault[] }).errors ?? [];
    const { line, column } = fault?.location ?? {};
    const place = line === undefined ? "" : `:${line}:${(column ?? 0) + 1}`;
    return `${file}${place} is not JSON: ${fault?.text ?? (error as Error).message}.`;
  }
};

/**
 * Checks a tsconfig.json and the files that it extends; answers the fault in a sentence. Loaders ignore the broken parts without a
 * message, and then `paths` do not work.
 */
export const tsconfigFault = async (file: string | undefined): Promise<string | undefined> => {
  if (file === undefined) return undefined;
  for (const part of tsconfigFilesOf(file)) {
    const fault = await syntaxFault(part);
    if (fault !== undefined) return fault;
  }
  try {
    parseTsconfig(resolve(file));
    return undefined;
  } catch (error) {
    return `${resolve(file)} can't be used: ${(error as Error).message}`;
  }
};
