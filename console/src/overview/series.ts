import { DAY_MS } from "../parts/relative-time.ts";
import type { ChartData, Series } from "./chart.tsx";
import type { Look } from "./colours.ts";
import { countText, dayText, hourText } from "./numbers.ts";
import { allOf, failedOf, STATUSES, type Summary, type Usage } from "./queries.ts";

const HOURS_OF_DAY = 24;
const MODELS_AT_MOST = 4;
const OTHERS = "Other models";

const LOOK_OF_STATUS: Readonly<Record<(typeof STATUSES)[number], Look>> = {
  success: { token: "good", pattern: "solid" },
  error: { token: "bad", pattern: "stripes" },
  timeout: { token: "bad", pattern: "dots" },
  interrupted: { token: "busy", pattern: "solid" },
  running: { token: "busy", pattern: "stripes" },
  pending: { token: "faint", pattern: "dots" },
};
const LOOKS_OF_MODELS: readonly Look[] = [
  { token: "node", pattern: "solid" },
  { token: "model", pattern: "stripes" },
  { token: "tool", pattern: "dots" },
  { token: "node", pattern: "stripes" },
];
const LOOK_OF_OTHERS: Look = { token: "faint", pattern: "solid" };

/** A chart and the sentence that stands for it. */
export interface Described {
  data: ChartData;
  summary: string;
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** The largest value and its label, e.g. `Most: 12, at 14:00.` */
const mostText = (labels: readonly string[], values: readonly number[], text: (value: number) => string) => {
  const most = Math.max(0, ...values);
  return most === 0 ? "" : ` Most: ${text(most)}, at ${labels[values.indexOf(most)] ?? ""}.`;
};

export const runsPerHour = ({ hours }: Summary): Described => {
  const labels = hours.map(({ hour }) => hourText(hour, hours.length <= HOURS_OF_DAY));
  const all = STATUSES.map((name): Series => ({
    name,
    ...LOOK_OF_STATUS[name],
    values: hours.map((counts) => counts[name]),
  }));
  const series = all.filter(({ name, values }) => name === "success" || values.some((value) => value > 0));
  const perHour = hours.map(allOf);
  const runs = sumOf(perHour);
  const summary =
    `${runs === 1 ? "1 run" : `${countText(runs)} runs`} in ${hours.length} hours, ` +
    `${countText(sumOf(hours.map(failedOf)))} of them failed.${mostText(labels, perHour, countText)}`;
  return { data: { labels, series }, summary };
};

const daysOf = ({ from, to }: Usage): string[] => {
  const days = [];
  for (let time = Date.parse(from); time <= Date.parse(to); time += DAY_MS)
    days.push(new Date(time).toISOString().slice(0, 10));
  return days;
};

type Row = Usage["rows"][number];
export const tokensOf = (row: Row): number => row.input_tokens + row.output_tokens;
export const costOf = ({ cost }: Row): number => cost ?? 0;

/** @param what the unit of the sum, e.g. `tokens` */
export const byDay = (
  usage: Usage,
  valueOf: (row: Row) => number,
  text: (value: number) => string,
  what: string,
): Described => {
  const days = daysOf(usage);
  const byModel = new Map<string, number>();
  for (const row of usage.rows) byModel.set(row.model, (byModel.get(row.model) ?? 0) + valueOf(row));
  const ranked = [...byModel].filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
  const largest = ranked.slice(0, MODELS_AT_MOST).map(([model]) => model);
  const placeOf = new Map(largest.map((model, place) => [model, place]));
  const dayAt = new Map(days.map((day, place) => [day, place]));
  const values = LOOKS_OF_MODELS.map(() => days.map(() => 0)).concat([days.map(() => 0)]);
  for (const row of usage.rows) {
    const [day, place] = [dayAt.get(row.day), placeOf.get(row.model) ?? MODELS_AT_MOST];
    const ofModel = values[place];
    if (day !== undefined && ofModel !== undefined) ofModel[day] = (ofModel[day] ?? 0) + valueOf(row);
  }
  const series: Series[] = largest.map((name, place) => ({
    name,
    ...(LOOKS_OF_MODELS[place] ?? LOOK_OF_OTHERS),
    values: values[place] ?? [],
  }));
  if (ranked.length > MODELS_AT_MOST)
    series.push({ name: OTHERS, ...LOOK_OF_OTHERS, values: values[MODELS_AT_MOST] ?? [] });
  const labels = days.map(dayText);
  const perDay = days.map((_, day) => sumOf(values.map((ofModel) => ofModel[day] ?? 0)));
  const summary = `${text(sumOf(perDay))} ${what} in ${days.length} days.${mostText(labels, perDay, text)}`;
  return { data: { labels, series }, summary };
};
