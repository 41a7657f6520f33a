import type { JsonObject } from "../platform/lib/json.ts";

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

/** Front ends recognise the list by LangGraph's key `langgraph_type`. */
export const messagesSchema = (): JsonObject => ({
  type: "array",
  title: "Messages",
  description: "A list of chat messages",
  langgraph_type: "messages",
  items: messageSchema(),
});
