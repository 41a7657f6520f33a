import { z } from "zod";
import { storableText } from "../../platform/domain/json-schemas.ts";

export const agentPath = z.object({
  assistant_id: storableText.describe("The assistant's id, or a graph id for the graph's system assistant."),
});
export const agentQuery = z.object({
  assistant_id: storableText.min(1).describe("The assistant's id, or a graph id."),
});
export const taskPath = agentPath.extend({
  task: storableText.describe("The id of a task. ':cancel' and ':subscribe' behind it are methods."),
});
export const configPath = taskPath.extend({ config_id: storableText });

const number = z.coerce.number().optional();

export const taskQuery = z.object({ historyLength: number });
export const listQuery = z.object({
  contextId: z.string().optional(),
  status: z.string().optional(),
  pageSize: number,
  pageToken: z.string().optional(),
  historyLength: number,
  statusTimestampAfter: z.string().optional(),
  includeArtifacts: z
    .enum(["true", "false"])
    .optional()
    .transform((value) => value === "true"),
});

/** The package validates messages. */
export const rpcBody = z.unknown().describe("A request of JSON-RPC 2.0.");
export const message = z.unknown().describe("A SendMessageRequest of A2A 1.0.");
export const pushConfig = z.looseObject({}).describe("A TaskPushNotificationConfig of A2A 1.0.");
export const answer = z.unknown().describe("As the A2A protocol says; server-sent events for streams.");
