import { durationOf, isOver } from "../parts/run.ts";
import { durationText } from "../parts/time.tsx";
import { attemptMs } from "../parts/timeline/rows.ts";
import { slowestNode } from "../parts/timeline/spans.ts";
import { costText, sumOf, type Trace } from "../parts/timeline/trace.ts";
import { useNow } from "../parts/use-now.ts";
import { attemptsText, type RunDetails } from "./run-record.ts";

const number = new Intl.NumberFormat("en");
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const exactTime = (iso: string | null | undefined): string | undefined => {
  const time = Date.parse(iso ?? "");
  return Number.isNaN(time) ? undefined : exact.format(time);
};

const waitOf = ({ created_at: created, available_at: due = created, run_started_at: started }: RunDetails) =>
  started == null
    ? undefined
    : durationText(Math.max(0, Date.parse(started) - Math.max(Date.parse(created), Date.parse(due))));

const tokensText = (trace: Trace): string | undefined => {
  const sum = sumOf(trace.usage);
  if (sum === undefined) return undefined;
  const cached = sum.cache_read_tokens === 0 ? "" : ` (${number.format(sum.cache_read_tokens)} cached)`;
  return `${number.format(sum.input_tokens)} in${cached}, ${number.format(sum.output_tokens)} out`;
};

const slowestText = (trace: Trace, now: number): string | undefined => {
  const attempt = trace.attempts.findLast(({ spans }) => spans.length > 0);
  const slowest = attempt && slowestNode(attempt.spans, attemptMs(trace, attempt, now));
  if (slowest === undefined) return undefined;
  return `${slowest.name}, ${durationText(slowest.milliseconds)}${slowest.times === 1 ? "" : ` in ${slowest.times} executions`}`;
};

export interface Fact {
  name: string;
  text: string;
  /** Otherwise, the comparison of two runs leaves it out. */
  isCompared: boolean;
}

/** What is known of a run, without what is not. */
export const factsOf = (
  run: RunDetails,
  trace: Trace | undefined,
  { now, currency }: { now: number; currency: string | undefined },
): Fact[] => {
  const cost = trace && sumOf(trace.usage)?.cost;
  const facts: [name: string, text: string | undefined, isCompared: boolean][] = [
    ["Created", exactTime(run.created_at), false],
    ["Waited", waitOf(run), true],
    ["Duration", durationOf(run, now), true],
    ["Ended", exactTime(run.run_ended_at), false],
    ["Attempts", run.attempts === undefined ? undefined : attemptsText(run), true],
    ["Tokens", trace && tokensText(trace), true],
    ["Cost", cost == null ? undefined : costText(cost, currency), true],
    ["Slowest node", trace && slowestText(trace, now), true],
    ["Multitask strategy", run.multitask_strategy === "enqueue" ? undefined : run.multitask_strategy, true],
  ];
  return facts.flatMap(([name, text, isCompared]) =>
    text === undefined ? [] : [{ name, text, isCompared }],
  );
};

export const useFacts = (run: RunDetails, trace: Trace | undefined, currency: string | undefined): Fact[] =>
  factsOf(run, trace, { now: useNow(!isOver(run)), currency });
