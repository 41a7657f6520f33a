import { median } from "./load.ts";

/** Who was measured: this server, the bare library (without a saver, in memory, official Postgres saver), a peer. */
export const CONTENDERS = ["threadloom", "none", "memory", "official", "peer"] as const;
export type ContenderName = (typeof CONTENDERS)[number];

const HEADINGS: Readonly<Record<ContenderName, string>> = {
  threadloom: "this server",
  none: "no saver",
  memory: "memory saver",
  official: "official saver",
  peer: "peer",
};

export interface FigureDescription {
  /** One line; unique within its scenario. */
  label: string;
  unit: string;
  better: "more" | "less";
  /** What issue or design asks for, as text. */
  wanted?: string;
}

export interface Figure extends FigureDescription {
  scenario: string;
  /** One value per repeat. */
  values: Partial<Record<ContenderName, number[]>>;
}

/** Collects what scenarios measure. */
export const createFigures = () => {
  const figures = new Map<string, Figure>();
  return {
    /** One more repeat of a figure. */
    add(scenario: string, description: FigureDescription, contender: ContenderName, value: number): void {
      const key = `${scenario}/${description.label}`;
      const figure = figures.get(key) ?? { scenario, ...description, values: {} };
      figures.set(key, figure);
      (figure.values[contender] ??= []).push(value);
    },
    all: (): Figure[] => [...figures.values()],
  };
};
export type Figures = ReturnType<typeof createFigures>;

/** Three digits that count; more would pretend to a precision that isn't there. */
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
  const widths = heading.map((text, column) =>
    Math.max(text.length, ...rows.map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [line(heading), rule, ...rows.map(line)].join("\n");
};
