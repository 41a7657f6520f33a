import { readFile } from "node:fs/promises";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";

/** Line and column from 1. */
interface SourcePlace {
  file: string;
  line: number;
  column: number | undefined;
  frame: string | undefined;
}

const OWN = fileURLToPath(new URL("../", import.meta.url));
const FRAMES_AT_MOST = 5;
const LINES_BEFORE = 2;
const LINES_AFTER = 2;
/** A minified file is one line. */
const CHARACTERS_AT_MOST = 160;

const pathOf = (text: string): string => (text.startsWith("file:") ? fileURLToPath(text) : text);

const isTheirs = (file: string): boolean =>
  (file.startsWith("/") || /^[A-Za-z]:[\\/]/.test(file)) &&
  !file.startsWith(OWN) &&
  !file.split(sep).includes("node_modules");

const placesIn = (lines: readonly string[], pattern: RegExp): SourcePlace[] =>
  lines.flatMap((text): SourcePlace[] => {
    const { file = "", line = "", column } = pattern.exec(text)?.groups ?? {};
    if (file === "" || !isTheirs(pathOf(file))) return [];
    const frame = /^\s+at /.test(text) ? text.trim() : undefined;
    return [{ file: pathOf(file), line: Number(line), column: column ? Number(column) : undefined, frame }];
  });

const FRAME = /^\s+at (?:.*\()?(?<file>(?:file:)?[^()]+?):(?<line>\d+):(?<column>\d+)\)?$/;
/** esbuild's compile error. */
const COMPILED = /^(?<file>.+?):(?<line>\d+):(?<column>\d+): ERROR: /;
/** Node prints the line that it can't link before the error. */
const LINKED = /^(?<file>(?:file:)?[^\s:][^:]*):(?<line>\d+)$/;
const MISSING_PACKAGE = /^Cannot find (?:package|module) '(?<name>[^']+)' imported from (?<file>.+)$/m;

/** Node names only the file, so this finds the line of the import. */
const importOf = async (message: string): Promise<SourcePlace[]> => {
  const { name = "", file = "" } = MISSING_PACKAGE.exec(message)?.groups ?? {};
  if (file === "" || !isTheirs(pathOf(file))) return [];
  const lines = (await readFile(pathOf(file), "utf8").catch(() => "")).split("\n");
  const line = lines.findIndex((text) => [`"${name}`, `'${name}`].some((quoted) => text.includes(quoted)));
  if (line < 0) return [];
  return [{ file: pathOf(file), line: line + 1, column: undefined, frame: undefined }];
};

const excerpt = async ({ file, line, column }: SourcePlace): Promise<string[]> => {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n");
  if (lines[line - 1] === undefined) return [];
  const from = Math.max(1, line - LINES_BEFORE);
  const shown = lines.slice(from - 1, line + LINES_AFTER);
  const width = String(from + shown.length - 1).length;
  return shown.flatMap((text, index) => {
    const number = from + index;
    const mark = number === line ? ">" : " ";
    const row = `${mark} ${String(number).padStart(width)} | ${text.slice(0, CHARACTERS_AT_MOST)}`.trimEnd();
    if (number !== line || column === undefined || column > CHARACTERS_AT_MOST) return [row];
    // Keeps tabs, so that the mark is below its column.
    const indent = text.slice(0, column - 1).replace(/[^\t]/g, " ");
    return [row, `  ${" ".repeat(width)} | ${indent}^`];
  });
};

/** A deep recursion has thousands of frames. */
const LINES_AT_MOST = 50;

/** The first place of a stack outside packages and this server. */
export const frameOf = (error: unknown): SourcePlace | undefined =>
  error instanceof Error ? placesIn((error.stack ?? "").split("\n", LINES_AT_MOST), FRAME)[0] : undefined;

/** Empty, or begins with a line break. */
export const placeText = async (error: unknown): Promise<string> => {
  if (!(error instanceof Error)) return "";
  const stack = (error.stack ?? "").split("\n");
  const frames = placesIn(stack, FRAME);
  const [first] = [
    ...placesIn(error.message.split("\n"), COMPILED).map((place) => ({
      ...place,
      column: (place.column ?? 0) + 1,
    })),
    ...placesIn(stack.slice(0, 1), LINKED),
    ...frames,
    ...(await importOf(error.message)),
  ];
  if (first === undefined) return "";
  const at =
    first.column === undefined
      ? `${first.file}:${first.line}`
      : `${first.file}:${first.line}:${first.column}`;
  const lines = first.frame === undefined ? [`at ${at}`] : frames.map(({ frame }) => frame ?? "");
  return [
    "",
    ...lines.slice(0, FRAMES_AT_MOST).map((frame) => `    ${frame}`),
    "",
    ...(await excerpt(first)).map((row) => `  ${row}`),
  ].join("\n");
};
