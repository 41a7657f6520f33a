import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { linesOfTests, sizesOf, wordsOfDocs, type Size } from "./lines.ts";

/** The sizes of the project only fall. */

interface Budget {
  code: Record<string, Record<string, Size>>;
  wordsOfDocs: number;
  linesOfTests: number;
}

/** The most that the project may hold. Whoever needs more deletes something first. */
const FILE = new URL("budget.json", import.meta.url);

const budget = JSON.parse(readFileSync(FILE, "utf8")) as Budget;
const actual: Budget = {
  code: Object.fromEntries(
    Object.keys(budget.code).map((folder) => [folder, Object.fromEntries(sizesOf(folder))]),
  ),
  wordsOfDocs: wordsOfDocs("."),
  linesOfTests: linesOfTests("test"),
};

/** "what: how much, of how much", for each size above its budget. */
function excessOf(sizes: Budget, limits: Budget): string[] {
  const excess: string[] = [];
  const compare = (what: string, size: number, limit: number): void => {
    if (size > limit) excess.push(`${what}: ${size} of ${limit}`);
  };
  for (const [folder, parts] of Object.entries(sizes.code)) {
    for (const [part, { lines, files }] of Object.entries(parts)) {
      const limit = limits.code[folder]?.[part] ?? { lines: 0, files: 0 };
      compare(`lines of ${folder}/${part}`, lines, limit.lines);
      compare(`files of ${folder}/${part}`, files, limit.files);
    }
  }
  compare("words of docs", sizes.wordsOfDocs, limits.wordsOfDocs);
  compare("lines of tests", sizes.linesOfTests, limits.linesOfTests);
  return excess;
}

test("no folder holds more than its budget", () => {
  const excess = excessOf(actual, budget);
  if (process.env["UPDATE_BUDGET"] === "1" && excess.length === 0)
    writeFileSync(FILE, `${JSON.stringify(actual, undefined, 2)}\n`);
  expect(excess).toEqual([]);
});

test("a folder that the budget doesn't know may hold nothing", () => {
  const sizes = { ...budget, code: { src: { unknown: { lines: 1, files: 1 } } } };
  expect(excessOf(sizes, budget)).toEqual(["lines of src/unknown: 1 of 0", "files of src/unknown: 1 of 0"]);
});
