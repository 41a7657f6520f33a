import { errorForClients } from "../../../platform/domain/error-for-clients.ts";
import { isMessage } from "../../../state/values/types/message.ts";
import { toWireJson, toWireValue } from "../../../state/values/wire-json.ts";
import type { PublishProtocolEvent } from "./events.ts";
import { isObject } from "../../../platform/lib/json.ts";

interface ToolChunk {
  event: string;
  toolCallId?: unknown;
  name?: unknown;
  input?: unknown;
  data?: unknown;
  output?: unknown;
  error?: unknown;
}

/** LangChain passes the arguments of a call as JSON text. */
const inputOf = (input: unknown): Record<string, unknown> => {
  if (isObject(input)) return input;
  try {
    const parsed: unknown = JSON.parse(String(input));
    if (isObject(parsed)) return parsed;
  } catch {
    // The tool's input is plain text.
  }
  return { input };
};

const isAnswerTo = (value: unknown, id: string): value is object =>
  isObject(value) && isMessage(value) && (value as { tool_call_id?: unknown }).tool_call_id === id;

/** The tool's output, or a message in a command that the tool returned. */
const answerIn = (output: unknown, id: string): object | undefined => {
  if (isAnswerTo(output, id)) return output;
  const update: unknown = isObject(output) ? output["update"] : undefined;
  const messages: unknown = isObject(update) ? update["messages"] : undefined;
  return Array.isArray(messages)
    ? messages.find((message): message is object => isAnswerTo(message, id))
    : undefined;
};

const outputOf = (output: unknown, id: string, name: string): unknown => {
  const answer = answerIn(output, id);
  if (answer !== undefined) {
    const flat = toWireValue(answer) as Record<string, unknown>;
    return flat["status"] === undefined ? { ...flat, status: "success" } : flat;
  }
  const content = typeof output === "string" ? output : toWireJson(output);
  return { type: "tool", content, name, tool_call_id: id, status: "success" };
};

/** Calls without an id are skipped, because clients can't match them. */
export const publishTool = (
  publish: PublishProtocolEvent,
  namespace: readonly string[],
  node: string | undefined,
  payload: unknown,
): void => {
  const { event, toolCallId: id, name, input, data, output, error } = payload as ToolChunk;
  if (typeof id !== "string" || id === "") return;
  const send = (fields: () => Record<string, unknown>): void =>
    publish("tools", namespace, () => ({ ...fields(), tool_call_id: id }), node);
  const toolName = typeof name === "string" ? name : "";
  switch (event) {
    case "on_tool_start":
      return send(() => ({ event: "tool-started", tool_name: toolName, input: inputOf(input) }));
    case "on_tool_event":
      return send(() => ({
        event: "tool-output-delta",
        delta: typeof data === "string" ? data : toWireJson(data),
      }));
    case "on_tool_end":
      return send(() => ({ event: "tool-finished", output: outputOf(output, id, toolName) }));
    case "on_tool_error":
      return send(() => ({ event: "tool-error", message: errorForClients(error).message }));
  }
};
