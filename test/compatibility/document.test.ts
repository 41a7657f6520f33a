import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { differencesOf, keepingSkipped, parse, render, tablesOf, type Result } from "./document.ts";

const aResult = (overrides: Partial<Result> = {}): Result => ({
  table: "Threads",
  row: "GET /threads/{thread_id}",
  column: "success",
  file: "test/contract/threads.test.ts",
  outcome: "green",
  ...overrides,
});
const RESULTS = [
  aResult(),
  aResult({ column: "422", outcome: "differs", reason: "it says 404 | always" }),
  aResult({ column: "404" }),
  aResult({ row: "POST /threads", column: "422", outcome: "differs", reason: "it says 404 | always" }),
  aResult({ table: "Browser", row: "useStream", column: "1.8.10", file: "test/clients/browser.test.ts" }),
  aResult({
    table: "Browser",
    row: "useStream",
    column: "2.0.0",
    file: "test/clients/browser.test.ts",
    outcome: "skipped",
    reason: "no Chromium",
  }),
];
const [threads, browser] = tablesOf(RESULTS);

test("the document contains the result of each cell's test, each reason once, and the number of cells", () => {
  const document = render(tablesOf(RESULTS));
  expect(document).toContain("**6 cells: 3 green (✓), 3 other (1 skipped, 2 differs).**");
  expect(document).toContain("| [Threads](#threads) | 4 | 2 | 2 differs |");
  expect(document).toContain("| [Browser](#browser) | 2 | 1 | 1 skipped |");
  expect(document).toContain("|  | success | 404 | 422 |");
  expect(document).toContain("| GET /threads/{thread_id} | ✓ | ✓ | differs (1) |");
  expect(document).toContain("| POST /threads |  |  | differs (1) |");
  expect(document.match(/it says 404/g)).toHaveLength(1);
  expect(document).toContain("| useStream | ✓ | skipped (1) |");
  expect(document).toContain("1. skipped: no Chromium");
});

test("a written document is read back unchanged", () => {
  expect(parse(render([threads!, browser!]))).toEqual([browser, threads]);
});

test("tables are in the order in which a reader needs them, and a written document keeps it", () => {
  const names = [
    "Description of the API",
    "Beside the local JavaScript server",
    "Operations: Server",
    "Operations: Assistants",
    "Python SDK: resources and run streams",
    "Methods of the JavaScript SDK",
  ];
  const document = render(tablesOf(names.map((table) => aResult({ table }))));
  expect(parse(document).map(({ name }) => name)).toEqual(names.toReversed());
  expect(render(parse(document))).toBe(document);
  const written = readFileSync(new URL("../../docs/compatibility.md", import.meta.url), "utf8");
  expect(render(parse(written))).toBe(written);
});

test("a changed cell, a new one and one without a test are differences", () => {
  expect(differencesOf(threads!, threads)).toEqual([]);
  const [changed] = tablesOf([aResult({ outcome: "differs", reason: "so" }), aResult({ column: "409" })]);
  expect(differencesOf(changed!, threads)).toEqual([
    "Threads: GET /threads/{thread_id}: success is 'differs: so', not '✓'",
    "Threads: GET /threads/{thread_id}: 409 is missing",
    "Threads: POST /threads is shown by no test",
  ]);
  const [fewer] = tablesOf(RESULTS.slice(1, 4).concat(aResult({ row: "POST /threads" })));
  expect(differencesOf(fewer!, threads)).toEqual([
    "Threads: POST /threads: success is missing",
    "Threads: GET /threads/{thread_id}: success is shown by no test",
  ]);
  expect(differencesOf(threads!, undefined)).toHaveLength(4);
});

test("a run with fewer columns is no difference, nor is a test that this machine can't run", () => {
  const [part] = tablesOf([RESULTS[4]!]);
  expect(differencesOf(part!, browser)).toEqual([]);
  const [skipped] = tablesOf([{ ...RESULTS[4]!, outcome: "skipped", reason: "no Chromium" }]);
  expect(differencesOf(skipped!, browser)).toEqual([]);
  const [shown] = tablesOf([{ ...RESULTS[5]!, outcome: "green", reason: undefined }]);
  expect(differencesOf(shown!, browser)).toHaveLength(1);
});

test("the cell of a test that this machine can't run stays unchanged", () => {
  const cells = { ...RESULTS[4]!, outcome: "skipped", reason: "no browser" } as const;
  const [here] = tablesOf([cells, { ...cells, column: "1.15.0" }]);
  expect([...keepingSkipped(here!, browser).rows.get("useStream")!]).toEqual([
    ["1.8.10", "✓"],
    ["1.15.0", "skipped: no browser"],
  ]);
});

test("two tests can't be one cell", () => {
  expect(() => tablesOf([aResult(), aResult()])).toThrow("Two tests are the cell");
});
