import { z } from "zod";
import { optional, storableText, uuid } from "../../platform/domain/json-schemas.ts";

const NAME_CHARACTERS = 1_000;

const runId = storableText.min(1).max(NAME_CHARACTERS);

export const agentPath = z.object({
  assistant_id: storableText
    .min(1)
    .describe("An assistant's id, or a graph id for the graph's own assistant."),
});

/** The protocol's package checks the other fields (input.ts): its schemas are loaded with the first request. */
export const agentInput = z
  .looseObject({
    threadId: uuid.describe("The conversation. A missing thread is created."),
    runId: runId.describe("Repeating a request with the same id joins its run."),
    forwardedProps: z.unknown().optional(),
    protocolVersion: z.string().optional().describe("`1.0`. Absent: the client speaks the older dialect."),
  })
  .meta({ id: "RunAgentInput" });
export type AgentInput = z.output<typeof agentInput>;

export const cancelBody = z.object({
  threadId: uuid,
  runId: optional(runId).describe("Without it, all unfinished runs of the thread are cancelled."),
});
