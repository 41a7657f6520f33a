import type { Message, Part } from "@a2a-js/sdk";
import { ContentTypeNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import type { Interrupt } from "../calls/outcome.ts";

interface Content {
  /** Undefined without a text part. */
  text: string | undefined;
  /** All data parts, merged. Undefined without one. */
  data: JsonObject | undefined;
}

const dataOf = (value: unknown): JsonObject => {
  if (isJsonObject(value)) return value;
  throw new RequestMalformedError("A data part must hold an object.");
};

const contentOf = (parts: readonly Part[]): Content => {
  const texts: string[] = [];
  let data: JsonObject | undefined;
  for (const { content } of parts) {
    if (content?.$case === "text") texts.push(String(content.value));
    else if (content?.$case === "data") data = { ...data, ...dataOf(content.value) };
    else throw new ContentTypeNotSupportedError("Only text parts and data parts are taken, no files.");
  }
  if (texts.length === 0 && data === undefined)
    throw new RequestMalformedError("The message has no part with text or data.");
  return { text: texts.length === 0 ? undefined : texts.join("\n"), data };
};

/** A graph without schemas takes any input. */
const takesMessages = (inputSchema: JsonObject): boolean => {
  const { properties } = inputSchema;
  return (
    !isJsonObject(properties) || Object.keys(properties).length === 0 || Object.hasOwn(properties, "messages")
  );
};

/** The graph's input: data parts are merged into it, and text becomes a message of the user. */
export const inputOf = async (
  { parts, messageId }: Message,
  inputSchema: () => Promise<JsonObject>,
): Promise<JsonObject> => {
  const { text, data = {} } = contentOf(parts);
  if (text === undefined) return data;
  if (!takesMessages(await inputSchema()))
    throw new RequestMalformedError(
      "The input of this assistant's graph has no 'messages' for a text part; send a data part.",
    );
  const before = Array.isArray(data.messages) ? data.messages : [];
  return { ...data, messages: [...before, { role: "user", content: text, id: messageId }] };
};

/** Answers by the ids of interrupts: `{<id>: value}` or `{resume: [{id, value}]}`. Undefined for another object. */
const answersById = (data: JsonObject, interrupts: readonly Interrupt[]): JsonObject | undefined => {
  const { resume } = data;
  const pairs: [unknown, JsonValue | undefined][] =
    Array.isArray(resume) && resume.length > 0 && resume.every(isJsonObject)
      ? resume.map(({ id, value }) => [id, value])
      : Object.entries(data);
  const answers = new Map<string, JsonValue>();
  for (const [id, value] of pairs) {
    if (!interrupts.some((interrupt) => interrupt.id === id)) return undefined;
    answers.set(id as string, value ?? null);
  }
  return answers.size === 0 ? undefined : Object.fromEntries(answers);
};

/** The `resume` of a command that answers the interrupts of a task. */
export const resumeOf = ({ parts }: Message, interrupts: readonly Interrupt[]): JsonValue => {
  const { text, data } = contentOf(parts);
  const byId = data && answersById(data, interrupts);
  if (byId !== undefined) return byId;
  if (interrupts.length > 1) {
    const ids = interrupts.map(({ id }) => `'${id}'`).join(", ");
    throw new RequestMalformedError(
      `The task waits for several answers: send a data part with the answers by the ids of the interrupts (${ids}).`,
    );
  }
  return data ?? text ?? null;
};
