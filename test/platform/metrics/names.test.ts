import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { METRICS, type MetricRow } from "../../../src/platform/metrics/table.ts";

/** What operators copy names only metrics that exist, and leaves none out. */

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const textOf = (path: string): string => readFileSync(ROOT + path, "utf8");

const rows: readonly (readonly [string, MetricRow])[] = Object.entries(METRICS);
const exported = new Set(
  rows.flatMap(([name, { kind }]) =>
    kind === "histogram" ? ["bucket", "sum", "count"].map((part) => `${name}_${part}`) : [name],
  ),
);
const usedIn = (path: string): string[] => [
  ...new Set([...textOf(path).matchAll(/\bthreadloom_(\w+)/g)].map(([, name = ""]) => name)),
];

test.each(["docs/monitoring/rules.yml", "docs/monitoring/dashboard.json", "test/monitoring/alerts.yml"])(
  "%s names only existing metrics",
  (path) => {
    expect(usedIn(path).length).toBeGreaterThan(10);
    expect(usedIn(path).filter((name) => !exported.has(name))).toEqual([]);
  },
);

test("the dashboard shows every metric", () => {
  const shown = usedIn("docs/monitoring/dashboard.json").map((name) => name.replace(/_(bucket|count)$/, ""));
  expect(rows.map(([name]) => name).filter((name) => !shown.includes(name))).toEqual([]);
});

const PAGE = textOf("docs/monitoring.md");
/** The first cells of the lines of a table below a heading. */
const firstCells = (heading: string): string[] =>
  (PAGE.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split(" | ")[0] ?? "");

test("the page on monitoring explains every metric with its labels, and no other", () => {
  const explained = firstCells("Metrics").flatMap((cell) =>
    [...cell.matchAll(/`(\w+)(?:\{([\w, ]+)\})?`/g)].map(([, name = "", labels = ""]) => `${name} ${labels}`),
  );
  const expected = rows.map(([name, { labels = [] }]) => `${name} ${labels.join(", ")}`);
  expect(explained.toSorted()).toEqual(expected.toSorted());
});

test("the page on monitoring explains every alert", () => {
  const alerts = [...textOf("docs/monitoring/rules.yml").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  expect(alerts.length).toBeGreaterThan(10);
  const explained = firstCells("Alerts").flatMap((cell) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(explained).toEqual(alerts);
});

test("names follow the conventions of Prometheus", () => {
  for (const [name, { kind, help, labels = [], buckets = [] }] of rows) {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect([name, name.endsWith("_total")]).toEqual([name, kind === "counter"]);
    expect(help).toMatch(/\.$/);
    expect(labels).not.toContain("le");
    expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
  }
});
