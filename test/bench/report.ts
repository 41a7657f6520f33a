import { median } from "./load.ts";
import {
  CONTENDERS,
  type ContenderName,
  type Figure,
  type FigureDescription,
  type Series,
} from "./results.ts";

const HEADINGS: Readonly<Record<ContenderName, string>> = {
  threadloom: "this server",
  none: "no saver",
  memory: "memory saver",
  official: "official saver",
  peer: "peer",
};

/** Collects the measurements of scenarios. */
export const createFigures = () => {
  const figures = new Map<string, Figure>();
  const series = new Map<string, Series>();
  return {
    /** One more repeat of a figure. */
    add(scenario: string, description: FigureDescription, contender: ContenderName, value: number): void {
      const key = `${scenario}/${description.label}`;
      const figure = figures.get(key) ?? { scenario, ...description, values: {} };
      figures.set(key, figure);
      (figure.values[contender] ??= []).push(value);
    },
    /** The change of one contender's figure over the turns of a conversation. */
    addSeries(
      scenario: string,
      { label, unit }: Pick<Series, "label" | "unit">,
      contender: ContenderName,
      points: [turn: number, value: number][],
    ): void {
      const key = `${scenario}/${label}`;
      const found = series.get(key) ?? { scenario, label, unit, points: {} };
      series.set(key, found);
      found.points[contender] = points;
    },
    all: (): Figure[] => [...figures.values()],
    allSeries: (): Series[] => [...series.values()],
  };
};
export type Figures = ReturnType<typeof createFigures>;

/** Three significant digits; more would suggest a precision that does not exist. */
export const formatNumber = (value: number): string => {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  if (value === 0) return "0";
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
};

const ratio = (figure: Figure): string => {
  const own = median(figure.values.threadloom ?? []);
  const official = median(figure.values.official ?? []);
  return Number.isFinite(own / official) ? `${(own / official).toFixed(2)}x` : "";
};

/** A Markdown table whose columns align in a terminal. The first row is the heading. */
export const tableOf = (rows: readonly (readonly string[])[]): string => {
  const [heading = [], ...body] = rows;
  const widths = heading.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [line(heading), rule, ...body.map(line)].join("\n");
};

/** The figures as a Markdown table that is also readable in a terminal. */
export const formatTable = (figures: readonly Figure[]): string => {
  const present = CONTENDERS.filter((name) => figures.some((figure) => figure.values[name] !== undefined));
  const withRatio = present.includes("official");
  const heading = [
    "figure",
    ...present.map((name) => HEADINGS[name]),
    ...(withRatio ? ["÷ official"] : []),
    "wanted",
  ];
  const rows = figures.map((figure) => [
    `${figure.scenario}: ${figure.label}, ${figure.unit} ${figure.better === "more" ? "↑" : "↓"}`,
    ...present.map((name) => {
      const values = figure.values[name];
      return values === undefined ? "" : formatNumber(median(values));
    }),
    ...(withRatio ? [ratio(figure)] : []),
    figure.wanted ?? "",
  ]);
  return tableOf([heading, ...rows]);
};
