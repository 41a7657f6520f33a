import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseTsconfig } from "get-tsconfig";

/** Keys of the parser's cache: files that it read or looked for. */
const CHECKED = /^(?:readFileSync:(?<read>.+):utf8|existsSync:(?<sought>.+\.json))$/;

/** Includes extended and missing files; absolute. */
export const tsconfigFilesOf = (file: string): string[] => {
  const path = resolve(file);
  const messages = new Map<string, string>();
  try {
    parseTsconfig(path, messages);
  } catch {
    // The file is broken: the cache has the files that were read before the error.
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

/** Loaders ignore broken files silently, and then `paths` do not work. */
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
