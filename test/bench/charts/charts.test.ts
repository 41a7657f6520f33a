import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { readResults, writeResults, type Results } from "../results.ts";
import { CHARTS, drawCharts } from "./draw.ts";
import { drawRunsPerSecond } from "./runs-per-second.ts";
import { ticks, wrapped } from "./svg.ts";
import { drawTurns } from "./turns.ts";

const COMMITTED = fileURLToPath(new URL("../../../docs/charts", import.meta.url));

const perSecond = (scenario: string, values: Results["figures"][number]["values"]) => ({
  scenario,
  label: "16 at a time",
  unit: "runs/s",
  better: "more" as const,
  values,
});

const someResults = (overrides: Partial<Results> = {}): Results => ({
  command: "npm run bench -- --only wait,long-thread",
  machine: {
    date: "2026-01-02",
    commit: "0123abc",
    processor: "a processor",
    cores: 2,
    memoryGiB: 24,
    system: "Linux 6",
    node: "v20.20.0",
    postgres: "18.4",
    settings: { fsync: "on" },
    loadBefore: 1.25,
  },
  repeats: 3,
  figures: [
    perSecond("wait", { threadloom: [290, 300, 400], official: [200], none: [1_200], peer: [25] }),
    perSecond("ten-steps", { threadloom: [150], official: [100] }),
  ],
  series: [
    {
      scenario: "long-thread",
      label: "200 turns, stream",
      unit: "ms/turn",
      points: {
        threadloom: [
          [1, 5],
          [200, 6],
        ],
        official: [
          [1, 7],
          [200, 40],
        ],
      },
    },
    {
      scenario: "long-thread",
      label: "1000 turns, stream",
      unit: "ms/turn",
      points: {
        threadloom: [
          [10, 5],
          [990, 6.5],
        ],
        official: [
          [10, 7],
          [990, 178],
        ],
      },
    },
  ],
  ...overrides,
});

const aFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-charts-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
};

describe("the chart of runs per second", () => {
  test("shows each contender's median, and its ratio to the official saver's", () => {
    const svg = drawRunsPerSecond(someResults())!;
    for (const words of [
      "1.50× · 300 runs/s",
      "1.00× · 200 runs/s",
      "6.00× · 1,200 runs/s",
      "0.13× · 25.0 runs/s",
    ])
      expect(svg).toContain(`>${words}</text>`);
  });

  test("has bars in proportion to the ratios, from one zero", () => {
    const svg = drawRunsPerSecond(someResults())!;
    const bars = [...svg.matchAll(/<rect x="([\d.]+)" [^>]*width="([\d.]+)"[^>]*class="(\w+) bar"/g)];
    expect(new Set(bars.map(([, x]) => x)).size).toBe(1);
    const widthOf = (name: string) => Number(bars.find(([, , , contender]) => contender === name)![2]);
    expect(widthOf("threadloom") / widthOf("official")).toBeCloseTo(1.5, 1);
    expect(widthOf("none") / widthOf("official")).toBeCloseTo(6, 0);
    expect(bars.map(([, , , contender]) => contender)).toEqual([
      ...["threadloom", "official", "none", "peer"],
      ...["threadloom", "official"],
    ]);
  });

  test("shows the number of measurements", () => {
    expect(drawRunsPerSecond(someResults())).toContain("Medians of 3 repeats");
    expect(drawRunsPerSecond(someResults({ repeats: 1 }))).toContain("One repeat");
  });

  test("is not drawn without the official saver or this server, because it shows their ratio", () => {
    for (const values of [{ threadloom: [300] }, { official: [200] }])
      expect(drawRunsPerSecond(someResults({ figures: [perSecond("wait", values)] }))).toBeUndefined();
  });
});

describe("the chart of turns", () => {
  test("shows the longest conversation, at its scale", () => {
    const svg = drawTurns(someResults())!;
    expect(svg).toContain(">178 ms at the end</text>");
    expect(svg).not.toContain(">40.0 ms at the end</text>");
    const endOf = (name: string) =>
      Number(new RegExp(`<polyline points="[^"]*,([\\d.]+)" class="${name} line"`).exec(svg)![1]);
    const yOf = (mark: string) =>
      Number(new RegExp(`y="([\\d.]+)"[^>]*>${mark} ms</text>`).exec(svg)![1]) - 4;
    const share = (y: number) => (yOf("0") - y) / (yOf("0") - yOf("200"));
    expect(share(endOf("official"))).toBeCloseTo(178 / 200, 2);
    expect(share(endOf("threadloom"))).toBeCloseTo(6.5 / 200, 2);
  });

  test("marks the points if they are few, because values between them were not measured", () => {
    expect(drawTurns(someResults())!.match(/<circle/g)).toHaveLength(4);
    const [first] = someResults().series;
    const many = Array.from({ length: 50 }, (_, index): [number, number] => [index * 20 + 10, 5]);
    expect(drawTurns(someResults({ series: [{ ...first!, points: { threadloom: many } }] }))).not.toContain(
      "<circle",
    );
  });

  test("has no overlapping names, although the lines end at the same height", () => {
    const [longest] = someResults().series.slice(1);
    const points = {
      threadloom: longest!.points.threadloom!,
      official: longest!.points.threadloom!,
      peer: longest!.points.threadloom!,
    };
    const svg = drawTurns(someResults({ series: [{ ...longest!, points }] }))!;
    const heights = [...svg.matchAll(/y="([\d.]+)" class="strong"/g)]
      .map(([, y]) => Number(y))
      .sort((a, b) => a - b);
    expect(heights).toHaveLength(3);
    expect(heights[1]! - heights[0]!).toBeGreaterThanOrEqual(34);
    expect(heights[2]! - heights[1]!).toBeGreaterThanOrEqual(34);
  });

  test("is not drawn if no conversation was measured", () => {
    expect(drawTurns(someResults({ series: [] }))).toBeUndefined();
  });
});

describe.each(Object.entries(CHARTS))("%s", (_name, draw) => {
  test("is the same text for the same results, and names the machine, the date and the method", () => {
    const svg = draw(someResults())!;
    expect(draw(structuredClone(someResults()))).toBe(svg);
    const words = svg.replaceAll(/<\/text>\s*<text[^>]*>/g, " ");
    expect(words).toContain("Measured 2026-01-02, commit 0123abc: 2 cores of a processor");
    expect(words).toContain("load before: 1.3.");
    expect(words).toContain("of: npm run bench -- --only wait,long-thread.");
  });

  test("has a title and a description, both colour schemes, and no external parts", () => {
    const svg = draw(someResults())!;
    expect(svg).toMatch(/role="img" aria-labelledby="title desc"/);
    expect(svg).toMatch(/<title id="title">.+<\/title>/);
    expect(svg).toMatch(/<desc id="desc">.+<\/desc>/);
    expect(svg).toContain("@media (prefers-color-scheme: dark)");
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|url\(|@import|@font-face|<script|href/,
    );
  });

  test("escapes markup in its texts", () => {
    const machine = { ...someResults().machine, processor: `<script>"&` };
    const svg = draw(someResults({ machine }))!;
    expect(svg).toContain("&lt;script&gt;&quot;&amp;");
    expect(svg).not.toContain("<script>");
  });
});

test("results read from a file are drawn like measured ones", async () => {
  const folder = await aFolder();
  await writeResults(join(folder, "results.json"), someResults());
  const read = await readResults(join(folder, "results.json"));
  expect(read).toEqual(someResults());
  const files = await drawCharts(read, folder);
  expect(files).toEqual(Object.keys(CHARTS).map((name) => join(folder, name)));
  expect(await readFile(files[0]!, "utf8")).toBe(drawRunsPerSecond(someResults()));
});

test("a median of nothing is left out of the file", async () => {
  const folder = await aFolder();
  const figures = [perSecond("wait", { threadloom: [NaN, 1.23456], official: [200] })];
  await writeResults(join(folder, "results.json"), someResults({ figures }));
  expect((await readResults(join(folder, "results.json"))).figures[0]!.values).toEqual({
    threadloom: [1.235],
    official: [200],
  });
});

test.each([
  ["is not there", undefined, /can't be read/],
  ["is no JSON", "{", /is no JSON/],
  ["is something else", `{"figures": []}`, /holds no results of the benchmark: .*machine/],
])("a file of results that %s is refused with one sentence", async (_what, content, refusal) => {
  const file = join(await aFolder(), "results.json");
  if (content !== undefined) await writeFile(file, content);
  await expect(readResults(file)).rejects.toThrow(refusal);
});

test("the charts of the documentation are drawn from the results beside them", async () => {
  const files = await readdir(COMMITTED);
  expect(files.sort()).toEqual(Object.keys(CHARTS).flatMap((name) => [name.replace(".svg", ".json"), name]));
  for (const [name, draw] of Object.entries(CHARTS)) {
    const results = await readResults(join(COMMITTED, name.replace(".svg", ".json")));
    expect(await readFile(join(COMMITTED, name), "utf8")).toBe(draw(results));
  }
});

test("marks of an axis are round, begin at 0, and reach the highest value", () => {
  expect(ticks(4.56)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(ticks(178)).toEqual([0, 50, 100, 150, 200]);
  expect(ticks(0.3)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(ticks(1000)).toEqual([0, 200, 400, 600, 800, 1000]);
});

test("lines break between words", () => {
  expect(wrapped("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrapped("seventeen", 4)).toEqual(["seventeen"]);
});
