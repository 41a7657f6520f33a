import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import {
  CONSOLE_PAGES,
  LONGEST,
  SMOKE_TESTS,
  THOROUGH,
  WITH_MODULES_REPLACED,
  WITH_PROCESSES,
} from "../vitest.config.ts";

/** `npm test` stays fast: apart from the smoke tests, none of its tests starts a process, kills one, or opens a browser. */

const ROOT = fileURLToPath(new URL("../", import.meta.url));

const SLOW = /^(node:)?child_process$|^playwright-core$|\/helpers\/server-process\.ts$/;

const importsOf = (file: string): string[] =>
  ts.preProcessFile(readFileSync(file, "utf8"), true, true).importedFiles.map(({ fileName }) => fileName);

/** The imports through which a test reaches something slow; undefined if there are none. */
const wayToSlow = (file: string, seen = new Set<string>()): string | undefined => {
  if (seen.has(file)) return undefined;
  seen.add(file);
  if (/graphProcesses: [1-9"]/.test(readFileSync(file, "utf8")))
    return `${relative(ROOT, file)} starts graph processes`;
  for (const name of importsOf(file)) {
    const target = name.startsWith(".") ? resolve(dirname(file), name) : name;
    if (SLOW.test(target)) return `${relative(ROOT, file)} imports ${name}`;
    if (!target.startsWith(resolve(ROOT, "test")) || !target.endsWith(".ts")) continue;
    const way = wayToSlow(target, seen);
    if (way !== undefined) return `${relative(ROOT, file)} -> ${way}`;
  }
  return undefined;
};

const FOLDER = /\/\*\*\/\*\.test\.ts$/;
const isWithProcesses = (file: string): boolean =>
  [...SMOKE_TESTS, ...WITH_PROCESSES].some((pattern) =>
    FOLDER.test(pattern) ? file.startsWith(`${pattern.replace(FOLDER, "")}/`) : file === pattern,
  );

const tests = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
  .map((file) => `test/${file.replaceAll("\\", "/")}`)
  .filter((file) => file.endsWith(".test.ts"))
  // Not of `npm test`: vitest.image.config.ts and vitest.package.config.ts name them.
  .filter((file) => !/^test\/(?:image|package)\//.test(file));

test("no fast test starts a process, apart from the smoke tests", () => {
  const ways = tests
    // These replace processes by mocks.
    .filter((file) => !isWithProcesses(file) && !WITH_MODULES_REPLACED.includes(file))
    .flatMap((file) => wayToSlow(join(ROOT, file)) ?? []);
  expect(ways).toEqual([]);
});

test("every test in the list of slow ones exists", () => {
  const named = [...SMOKE_TESTS, ...WITH_PROCESSES, ...THOROUGH, ...CONSOLE_PAGES, ...LONGEST];
  const files = named.filter((pattern) => !FOLDER.test(pattern));
  expect(files.filter((file) => !tests.includes(file))).toEqual([]);
  const folders = named.filter((pattern) => FOLDER.test(pattern));
  expect(
    folders.filter((folder) => !tests.some((file) => file.startsWith(folder.replace(FOLDER, "")))),
  ).toEqual([]);
});

test("every test that replaces a module or counts timers is in the list: other files share the process", () => {
  const alone = tests.filter((file) =>
    /^ *vi\.(mock|resetModules)\(|\bvi\.getTimerCount\(/m.test(readFileSync(join(ROOT, file), "utf8")),
  );
  expect(alone.sort()).toEqual([...WITH_MODULES_REPLACED].sort());
});
