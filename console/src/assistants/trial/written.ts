import { isObject } from "../../parts/is-object.ts";
import { UNTOUCHED, type Validity } from "../../parts/value-editor.tsx";

export type Schema = { properties?: Record<string, unknown> } | null | undefined;

/** The input of a run, as the user wrote it. */
export type Written =
  { kind: "message"; text: string } | { kind: "value"; value: unknown; validity: Validity };

export const takesMessages = (schema: Schema): boolean =>
  schema?.properties === undefined || Object.hasOwn(schema.properties, "messages");

export const emptyFor = (schema: Schema): Written =>
  takesMessages(schema) ? { kind: "message", text: "" } : valueOf({});

export const valueOf = (value: unknown): Written => ({ kind: "value", value, validity: UNTOUCHED });

/** Undefined if nothing can be sent. */
export const inputOf = (written: Written): { input: unknown } | undefined => {
  if (written.kind === "value") return written.validity.isJson ? { input: written.value } : undefined;
  return written.text.trim() === ""
    ? undefined
    : { input: { messages: [{ role: "user", content: written.text }] } };
};

/** The text, if the input is one message of a person and nothing else. */
const messageIn = (input: unknown): string | undefined => {
  if (!isObject(input) || Object.keys(input).length !== 1 || !Array.isArray(input["messages"]))
    return undefined;
  const [message, ...others] = input["messages"] as unknown[];
  if (!isObject(message) || others.length > 0) return undefined;
  const isOfPerson = message["role"] === "user" || message["type"] === "human";
  return isOfPerson && typeof message["content"] === "string" ? message["content"] : undefined;
};

export const writtenFrom = (input: unknown): Written => {
  const text = messageIn(input);
  return text === undefined ? valueOf(input) : { kind: "message", text };
};

/** In at most 300 characters. */
export const inputLine = (input: unknown): string =>
  (messageIn(input) ?? JSON.stringify(input) ?? "").slice(0, 300);
