import { z } from "zod";
import { emptyIsAbsent } from "../runs/schemas.ts";
import { usageOfModel } from "../runs/traces/schemas.ts";

const GROUPS = ["day", "graph_id", "assistant_id", "caller", "model", "thread_id"] as const;
export type UsageGroup = (typeof GROUPS)[number];

const isGroup = (name: string): name is UsageGroup => (GROUPS as readonly string[]).includes(name);

/** PostgreSQL knows no year 0. */
const FIRST_DAY = "1970-01-01";

const day = z.iso
  .date()
  .refine((text) => text >= FIRST_DAY, { error: `must not be before ${FIRST_DAY}` })
  .describe("A day of UTC, such as 2026-11-26.");

/** Names are stored without NUL, which PostgreSQL refuses. */
const name = z
  .string()
  .max(1_000)
  .refine((text) => !text.includes("\0"), { error: "must not contain NUL" });

export const usageQuery = z.object({
  from: emptyIsAbsent(day).describe("The first day. Default: 30 days before the last."),
  to: emptyIsAbsent(day).describe("The last day. Default: today."),
  group_by: z
    .string()
    .max(200)
    .default("day,model")
    .transform((text) => text.split(",").map((name) => name.trim()))
    .refine((names) => names.every(isGroup) && new Set(names).size === names.length, {
      error: `must be different ones of ${GROUPS.join(", ")}, separated by commas`,
    })
    .transform((names) => names as UsageGroup[]),
  graph_id: emptyIsAbsent(name),
  assistant_id: emptyIsAbsent(z.uuid()),
  thread_id: emptyIsAbsent(z.uuid()),
  caller: emptyIsAbsent(name).describe("As in an answer that is grouped by it."),
  model: emptyIsAbsent(name),
  format: z.enum(["json", "csv"]).default("json"),
});
export type UsageQuery = z.output<typeof usageQuery>;

export const usageRow = usageOfModel.omit({ model: true }).extend({
  day: z.string().optional(),
  graph_id: z.string().optional(),
  assistant_id: z.string().optional(),
  caller: z.string().nullable().optional().describe("A digest, as in log lines. Null: no named caller."),
  model: z.string().optional(),
  thread_id: z.string().optional(),
  runs: z.number(),
});
export type UsageRow = z.output<typeof usageRow>;

export const usageAnswer = z.object({
  from: z.string(),
  to: z.string(),
  currency: z.string().nullable(),
  rows: z
    .array(usageRow)
    .describe("At most 10,000, the largest number of tokens first unless grouped by day."),
  is_complete: z.boolean().describe("False: there are more rows; ask for fewer days or groups."),
});
export type UsageAnswer = z.output<typeof usageAnswer>;
