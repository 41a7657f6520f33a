import type { JsonObject } from "../platform/lib/json.ts";

/** The JSON schema of a chat message, as clients send it and as it is sent to them. */
export const messageSchema = (): JsonObject => ({
  type: "object",
  title: "Message",
  properties: {
    type: { type: "string", enum: ["human", "ai", "system", "developer", "tool", "function", "remove"] },
    role: { type: "string", enum: ["user", "assistant", "system", "developer", "tool"] },
    content: { anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }] },
    id: { type: "string" },
    name: { type: "string" },
    tool_calls: { type: "array", items: { type: "object" } },
    tool_call_id: { type: "string" },
  },
  required: ["content"],
});

/** The JSON schema of a list of messages. By `langgraph_type`, LangGraph's own word, front ends know it. */
export const messagesSchema = (): JsonObject => ({
  type: "array",
  title: "Messages",
  description: "A list of chat messages",
  langgraph_type: "messages",
  items: messageSchema(),
});
