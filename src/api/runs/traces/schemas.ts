import { z } from "zod";
import { runStatus } from "../schemas.ts";

const milliseconds = z.number().describe("Milliseconds since the attempt began.");

const error = z.object({
  type: z.string(),
  message: z.string(),
  at: z.string().optional().describe("The place in the project's code: file:line:column."),
});

const tokens = {
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_tokens: z.number().describe("Of the input."),
  cache_creation_tokens: z.number().describe("Of the input."),
  reasoning_tokens: z.number().describe("Of the output."),
};

export const span = z.object({
  id: z.number(),
  parent: z.number().nullable().describe("The span around this one. Null: the attempt."),
  kind: z.enum(["node", "model", "tool"]),
  name: z.string(),
  start_ms: milliseconds,
  end_ms: milliseconds.nullable().describe("Null: the end is not known, or not yet."),
  status: z.enum(["running", "success", "error", "interrupted", "lost"]),
  error: error.optional(),
  model: z.string().optional().describe("The model that answered."),
  provider: z.string().optional(),
  first_token_ms: milliseconds.optional(),
  stop_reason: z.string().optional(),
  usage: z.object(tokens).optional(),
  tool_call_id: z.string().optional(),
  arguments: z.string().optional().describe("At most 2,001 characters."),
  result: z.string().optional().describe("At most 2,001 characters."),
});
export type Span = z.output<typeof span>;

export const usageOfModel = z.object({
  model: z.string(),
  calls: z.number(),
  ...tokens,
  cost: z.number().nullable().describe("Null: the model has no price."),
});

export const trace = z.object({
  run_id: z.uuid(),
  thread_id: z.uuid(),
  status: runStatus,
  created_at: z.string(),
  queue_ms: z.number().nullable().describe("From the due time to the first attempt. Null: the run waits."),
  answered_after_ms: z
    .number()
    .nullable()
    .describe("How long the run before it waited for the answer that this run brings. Null: it brings none."),
  run_ms: z.number().nullable().describe("From the first attempt to the end. Null: the run has not ended."),
  attempts: z.array(
    z.object({
      attempt: z.number(),
      started_at: z.string().nullable().describe("Null: nothing of the attempt was stored."),
      spans: z.array(span),
      dropped_spans: z.number(),
    }),
  ),
  usage: z.array(usageOfModel),
});
export type Trace = z.output<typeof trace>;
