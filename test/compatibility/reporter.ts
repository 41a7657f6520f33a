import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import {
  differencesOf,
  keepingSkipped,
  parse,
  render,
  tablesOf,
  type Result,
  type Table,
} from "./document.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DOCUMENT = fileURLToPath(new URL("../../docs/compatibility.md", import.meta.url));
const UPDATE = "UPDATE_COMPATIBILITY";

const resultOf = (test: TestCase, file: string): Result[] => {
  const { cell } = test.meta();
  if (cell === undefined) return [];
  const { table, row, column, differs, notYet } = cell;
  const place = { table, row, column, file };
  const { state } = test.result();
  if (state === "skipped") {
    const { note } = test.result() as { note?: string };
    return [{ ...place, outcome: "skipped", reason: note ?? "no reason given" }];
  }
  if (differs !== undefined) return [{ ...place, outcome: "differs", reason: differs }];
  if (notYet !== undefined) return [{ ...place, outcome: "not yet", reason: notYet }];
  return [{ ...place, outcome: "green" }];
};

/** A module that failed, or of which only a part ran, proves nothing about its tables. */
const isPartly = (module: TestModule, name: RegExp | undefined): boolean =>
  name !== undefined ||
  module.state() === "failed" ||
  [...module.children.allTests()].some(({ options }) => options.mode === "only");

/**
 * Compares docs/compatibility.md with the cells that the tests of this run declare (feature.ts), and fails the run if they differ. Tables
 * whose files did not all run are left out. With `UPDATE_COMPATIBILITY=1` it writes the tables of this run, if the configuration has all
 * columns (`isWhole`: vitest.clients.config.ts). Skipped cells stay unchanged.
 */
export default class CompatibilityReporter implements Reporter {
  private namePattern: RegExp | undefined;
  private readonly isWhole: boolean;

  constructor({ isWhole = false }: { isWhole?: boolean } = {}) {
    this.isWhole = isWhole;
  }

  onInit(vitest: Vitest): void {
    this.namePattern = vitest.config.testNamePattern;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const whole = modules.filter((module) => !isPartly(module, this.namePattern));
    const nameOf = (module: TestModule): string => relative(ROOT, module.moduleId).replaceAll("\\", "/");
    const ran = new Set(whole.map(nameOf));
    const run = tablesOf(
      whole
        .sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
        .flatMap((module) =>
          [...module.children.allTests()].flatMap((test) => resultOf(test, nameOf(module))),
        ),
    );
    if (run.length === 0) return;
    const written = existsSync(DOCUMENT) ? parse(readFileSync(DOCUMENT, "utf8")) : [];
    if (this.isWhole && process.env[UPDATE] === "1") update(run, written, ran);
    else check(run, written, ran);
  }
}

/** Files of a table's tests that did not run. */
const absent = (table: Table, ran: ReadonlySet<string>): string[] =>
  table.files.filter((file) => !ran.has(file) && existsSync(`${ROOT}${file}`));

const check = (run: readonly Table[], written: readonly Table[], ran: ReadonlySet<string>): void => {
  const names = new Set(run.map(({ name }) => name));
  const differences = [
    ...run.flatMap((table) => {
      const before = written.find(({ name }) => name === table.name);
      return before !== undefined && absent(before, ran).length > 0 ? [] : differencesOf(table, before);
    }),
    ...written
      .filter((table) => !names.has(table.name) && absent(table, ran).length === 0)
      .map(({ name }) => `${name} is shown by no test`),
  ];
  if (differences.length === 0) return;
  process.exitCode = 1;
  process.stderr.write(
    `\ndocs/compatibility.md does not say what the tests show:\n${differences
      .slice(0, 30)
      .map((difference) => `  ${difference}\n`)
      .join("")}${UPDATE}=1 npm run test:clients writes it again.\n\n`,
  );
};

const update = (run: readonly Table[], written: readonly Table[], ran: ReadonlySet<string>): void => {
  for (const before of written) {
    const left = run.some(({ name }) => name === before.name) ? absent(before, ran) : [];
    if (left.length > 0) throw new Error(`'${before.name}' also needs ${left.join(", ")}.`);
  }
  const kept = written.filter(
    (table) => !run.some(({ name }) => name === table.name) && absent(table, ran).length > 0,
  );
  const recreated = run.map((table) =>
    keepingSkipped(
      table,
      written.find(({ name }) => name === table.name),
    ),
  );
  writeFileSync(DOCUMENT, render([...recreated, ...kept]));
  process.stderr.write(`\nWrote docs/compatibility.md.\n`);
};
