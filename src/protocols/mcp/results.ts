import type { CallToolResult, ClientCapabilities, InputRequests } from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import { LARGE_ANSWER_BYTES } from "../../http/large-answers.ts";
import type { Interrupt, Outcome } from "../calls/outcome.ts";
import { parseBody } from "../../http/bodies.ts";
import { ownField } from "../../platform/lib/names.ts";
import type { Task } from "../calls/tasks.ts";

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

/** Forms have flat fields only, and interrupts take any value. */
const ANSWER = "answer";
const FORM = {
  type: "object",
  properties: {
    [ANSWER]: {
      type: "string",
      title: "Answer",
      description: 'Text, or JSON such as true, 5 or {"decision": "approve"}.',
    },
  },
  required: [ANSWER],
} as const;

/** In the text of an answer. */
const ELEMENTS_AT_MOST = 20_000;

type Questions = Pick<Task, "interrupts" | "turns">;

/** A node's second interrupt has the id of its first, and a key must not be used twice. */
const keyOf = ({ id }: Interrupt, turns: number): string => `${id}.${turns}`;

/** A bare `elicitation` means forms. */
export const mayAsk = ({ elicitation }: ClientCapabilities): boolean =>
  elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);

/** An interrupt's value may itself be the parameters of an elicitation. */
const ownForm = (value: JsonValue): { message: string; requestedSchema: JsonObject } | undefined => {
  const { message, requestedSchema } = isJsonObject(value) ? value : {};
  return typeof message === "string" && isJsonObject(requestedSchema) && requestedSchema["type"] === "object"
    ? { message, requestedSchema }
    : undefined;
};

const formOf = (value: JsonValue) =>
  ownForm(value) ?? {
    message: typeof value === "string" ? value : JSON.stringify(value ?? null),
    requestedSchema: FORM,
  };

/** One request per interrupt. */
export const inputRequestsOf = ({ interrupts, turns }: Questions): InputRequests =>
  Object.fromEntries(
    interrupts.map((interrupt) => {
      const params = { mode: "form" as const, ...formOf(interrupt.value) };
      return [keyOf(interrupt, turns), { method: "elicitation/create" as const, params }];
    }),
  ) as unknown as InputRequests;

/** Of JSON; of any other text the text. */
const parsed = (text: string): JsonValue => {
  try {
    return (parseBody(text, ELEMENTS_AT_MOST) as JsonValue | undefined) ?? text;
  } catch {
    return text;
  }
};

const answerIn = ({ value }: Interrupt, content: unknown): JsonValue => {
  if (!isJsonObject(content)) return null;
  const answer = content[ANSWER];
  const isOfForm = ownForm(value) === undefined && Object.keys(content).length === 1;
  return isOfForm && typeof answer === "string" ? parsed(answer) : content;
};

interface Answers {
  /** By interrupt, for `command.resume`. Empty: nothing was answered. */
  resume: JsonObject;
  /** The user refused to answer. */
  isDeclined: boolean;
}

/** Ignores answers to questions that no longer wait. */
export const answersOf = (
  { interrupts, turns }: Questions,
  responses: Readonly<Record<string, unknown>> | undefined,
): Answers => {
  const answered: [string, JsonValue][] = [];
  let isDeclined = false;
  for (const interrupt of interrupts) {
    const response = ownField(responses, keyOf(interrupt, turns));
    if (!isJsonObject(response)) continue;
    if (response["action"] === "accept")
      answered.push([interrupt.id, answerIn(interrupt, response["content"])]);
    else isDeclined = true;
  }
  return { resume: Object.fromEntries(answered), isDeclined };
};
