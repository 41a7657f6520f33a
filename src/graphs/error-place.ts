import { sep } from "node:path";
import { fileURLToPath } from "node:url";

/** Line and column from 1. */
interface SourcePlace {
  file: string;
  line: number;
  column: number;
  /** As in the stack, e.g. `at node (/app/graph.ts:3:8)`. */
  frame: string;
}

const OWN = fileURLToPath(new URL("../", import.meta.url));
const FRAMES_AT_MOST = 5;
/** A deep recursion has thousands of frames. */
const LINES_AT_MOST = 50;

const FRAME = /^\s+(?<frame>at (?:.*\()?(?<file>(?:file:)?[^()]+?):(?<line>\d+):(?<column>\d+)\)?)$/;
/** Node prints the line that it can't link before the error. */
const LINKED = /^(?<file>(?:file:)?[^\s:][^:]*):(?<line>\d+)$/;

const isTheirs = (file: string): boolean =>
  (file.startsWith("/") || /^[A-Za-z]:[\\/]/.test(file)) &&
  !file.startsWith(OWN) &&
  !file.split(sep).includes("node_modules");

const placeIn = (text: string, pattern: RegExp): SourcePlace | undefined => {
  const { file = "", line = "", column = "1", frame } = pattern.exec(text)?.groups ?? {};
  const path = file.startsWith("file:") ? fileURLToPath(file) : file;
  if (!isTheirs(path)) return undefined;
  return { file: path, line: Number(line), column: Number(column), frame: frame ?? `at ${path}:${line}` };
};

const stackOf = (error: unknown): string[] =>
  error instanceof Error ? (error.stack ?? "").split("\n", LINES_AT_MOST) : [];
const framesOf = (lines: readonly string[]): SourcePlace[] =>
  lines.map((text) => placeIn(text, FRAME)).filter((place) => place !== undefined);

/** The first place of a stack outside packages and this server. */
export const frameOf = (error: unknown): SourcePlace | undefined => framesOf(stackOf(error))[0];

/** The frames in the project's code. Empty, or begins with a line break. */
export const placeText = (error: unknown): string => {
  const lines = stackOf(error);
  const linked = placeIn(lines[0] ?? "", LINKED);
  const places = linked === undefined ? framesOf(lines).slice(0, FRAMES_AT_MOST) : [linked];
  return places.map(({ frame }) => `\n    ${frame}`).join("");
};
