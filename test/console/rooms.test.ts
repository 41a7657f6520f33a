import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import { cyclesIn } from "../import-cycles.ts";

/** The order of console/README.md: a room imports from those below it, and pages do not import each other. */

const SOURCE = fileURLToPath(new URL("../../console/src/", import.meta.url));
const RANKS: ReadonlyMap<string, number> = new Map([
  ["design", 0],
  ["server", 0.5],
  ["parts", 1],
  ["shell", 3],
  ["gallery", 3],
  ["main.tsx", 4],
]);
const PAGES = 2;

const roomOf = (file: string): string => file.split("/")[0] ?? file;
const rankOf = (file: string): number => RANKS.get(roomOf(file)) ?? PAGES;

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".d.ts"));
const textOf = (file: string): string => readFileSync(join(SOURCE, file), "utf8");
const importsOf = (file: string): string[] =>
  ts
    .preProcessFile(textOf(file), true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => posix.join(posix.dirname(file), name));

test("rooms of the console import one way, and pages do not import each other", () => {
  const imports = files.flatMap((file) => importsOf(file).map((imported) => ({ file, imported })));
  expect(imports.length).toBeGreaterThan(200);
  const wrong = imports.filter(
    ({ file, imported }) => roomOf(file) !== roomOf(imported) && rankOf(imported) >= rankOf(file),
  );
  expect(wrong).toEqual([]);
});

test("no file of the console imports itself through others", () => {
  expect(cyclesIn(new Map(files.map((file) => [file, new Set(importsOf(file))])))).toEqual([]);
});

test("no file of the console has more than 300 lines", () => {
  expect(files.filter((file) => textOf(file).split("\n").length > 301)).toEqual([]);
});
