import type { CallToolResult } from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import { LARGE_ANSWER_BYTES } from "../../platform/lib/large-answers.ts";
import type { Interrupt, Outcome } from "../calls/outcome.ts";

/** Where the run of a call is found in the API. */
export interface Place {
  run_id: string;
  /** Undefined: the thread is deleted with the run. */
  thread_id: string | undefined;
}

type Content = CallToolResult["content"][number];

/** Parts of LangChain's messages that MCP has, too. */
const partOf = (part: JsonValue): Content | undefined => {
  if (!isJsonObject(part)) return undefined;
  const { type, text, data, mimeType } = part;
  if (type === "text" && typeof text === "string" && text !== "") return { type, text };
  if ((type === "image" || type === "audio") && typeof data === "string" && typeof mimeType === "string")
    return { type, data, mimeType };
  return undefined;
};

/** Empty if the state has no answer of a model. */
const lastAnswer = ({ messages }: JsonObject): Content[] => {
  if (!Array.isArray(messages)) return [];
  const last = messages.findLast((message) => isJsonObject(message) && message["type"] === "ai");
  const content = isJsonObject(last) ? last["content"] : undefined;
  const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
  return parts.map(partOf).filter((part) => part !== undefined);
};

const textOf = (value: JsonValue | undefined): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null);

export const errorResult = (text: string, place?: Place): CallToolResult => ({
  content: [{ type: "text", text }],
  isError: true,
  ...(place === undefined ? {} : { _meta: { ...place } }),
});

/** A large state is not sent twice. */
const stateText = (values: JsonObject): string => {
  const text = JSON.stringify(values);
  return Buffer.byteLength(text) > LARGE_ANSWER_BYTES
    ? "The result is too large to be repeated as text: it is in 'structuredContent'."
    : text;
};

const withValues = (content: Content[], values: JsonObject, place: Place): CallToolResult => ({
  content: content.length > 0 ? content : [{ type: "text", text: stateText(values) }],
  structuredContent: values,
  _meta: { ...place },
});

/** For clients that can't be asked: a model reads the question, and calls the tool again. */
const questionText = (interrupts: readonly Interrupt[], { thread_id: threadId }: Place): string => {
  const [first] = interrupts;
  const asked =
    interrupts.length === 1
      ? `The tool asks: ${textOf(first?.value)}`
      : `The tool asks several questions: ${JSON.stringify(Object.fromEntries(interrupts.map(({ id, value }) => [id, value])))}`;
  const answer =
    interrupts.length === 1
      ? "'resume' set to the answer"
      : "'resume' set to an object of the answers by the same keys";
  return threadId === undefined
    ? `${asked}\nThis call can't be continued. To answer, call the tool again with the same arguments and a new UUID as 'thread_id'; it will ask again.`
    : `${asked}\nTo answer, call the tool again with 'thread_id' set to '${threadId}' and ${answer}.`;
};

/** The result of a call whose run has ended. */
export const resultOf = (outcome: Outcome, place: Place): CallToolResult => {
  switch (outcome.kind) {
    case "completed":
      return withValues(lastAnswer(outcome.values), outcome.values, place);
    case "interrupted":
      return withValues(
        [{ type: "text", text: questionText(outcome.interrupts, place) }],
        outcome.values,
        place,
      );
    case "cancelled":
      return errorResult("The run was cancelled.", place);
    case "failed":
      return errorResult(`${outcome.error.error}: ${outcome.error.message}`, place);
  }
};
