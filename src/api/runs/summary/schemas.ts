import { z } from "zod";
import { queryInteger } from "../../../platform/domain/json-schemas.ts";

const HOURS_AT_MOST = 168;

export const summaryQuery = z.object({
  hours: queryInteger(1, HOURS_AT_MOST).describe("The current hour is one of them. Default: 24."),
});

const counts = {
  pending: z.number(),
  running: z.number(),
  success: z.number(),
  error: z.number(),
  timeout: z.number(),
  interrupted: z.number(),
};

const countsOfHour = z.object({ hour: z.string().describe("When the hour begins."), ...counts });

const durationMs = z
  .number()
  .nullable()
  .describe("From the first attempt to the end. Null: no such run has ended.");
const countsOfGraph = z.object({
  graph_id: z.string(),
  ...counts,
  median_ms: durationMs,
  p95_ms: durationMs,
});

export const summaryAnswer = z
  .object({
    from: z.string().describe("The time of creation counts."),
    to: z.string(),
    hours: z.array(countsOfHour).describe("The oldest hour first."),
    graphs: z.array(countsOfGraph).describe("At most 500, the largest number of runs first."),
    is_complete: z.boolean().describe("False: there are more graphs."),
  })
  .meta({ id: "RunSummary" });
export type SummaryAnswer = z.output<typeof summaryAnswer>;
