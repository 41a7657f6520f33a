import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** The one counter of this project's sizes. `npm run lines` prints them; `budget.test.ts` beside it holds them. */

export interface Size {
  files: number;
  /** Lines of code: without imports, blank lines and comments. A line of a text in backticks counts. */
  lines: number;
}

const CODE = /\.(tsx?|js)$/;

export const namesOf = (folder: string, pattern: RegExp): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => pattern.test(name))
    .sort();

export function linesOfCode(name: string, text: string): number {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
  const counted = new Set<number>();
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isJSDoc(node)) return;
    const children = node.getChildren(file);
    if (children.length > 0) return children.forEach(visit);
    if (node.getWidth(file) === 0) return;
    for (let line = lineOf(node.getStart(file)); line <= lineOf(node.getEnd()); line += 1) counted.add(line);
  };
  visit(file);
  const lines = text.split("\n");
  return [...counted].filter((line) => lines[line]?.trim() !== "").length;
}

/** The sizes of a folder of code by its folders of the first level; files that lie in the folder itself stand under ".". */
export function sizesOf(folder: string): Map<string, Size> {
  const sizes = new Map<string, Size>();
  for (const name of namesOf(folder, CODE)) {
    const part = name.includes("/") ? name.slice(0, name.indexOf("/")) : ".";
    const size = sizes.get(part) ?? { files: 0, lines: 0 };
    size.files += 1;
    size.lines += linesOfCode(name, readFileSync(join(folder, name), "utf8"));
    sizes.set(part, size);
  }
  return sizes;
}

export function sumOf(sizes: Iterable<Size>): Size {
  const sum = { files: 0, lines: 0 };
  for (const { files, lines } of sizes) {
    sum.files += files;
    sum.lines += lines;
  }
  return sum;
}

/** Lines as they stand in the files, of all tests and what they need. */
export const linesOfTests = (folder: string): number =>
  namesOf(folder, /\.([cm]?[jt]sx?)$/)
    .map((name) => readFileSync(join(folder, name), "utf8").split("\n").length - 1)
    .reduce((sum, lines) => sum + lines, 0);

const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length;

export const wordsOfDocs = (root: string): number =>
  ["README.md", ...namesOf(join(root, "docs"), /\.md$/).map((name) => `docs/${name}`)]
    .map((name) => wordsOf(readFileSync(join(root, name), "utf8")))
    .reduce((sum, words) => sum + words, 0);
