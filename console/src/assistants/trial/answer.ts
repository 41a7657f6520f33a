import { isObject } from "../../parts/is-object.ts";
import { contentText, tokensOf } from "../../parts/message-text.ts";

/** Kept of an answer; a graph may answer with megabytes. */
export const ANSWER_CHARACTERS = 20_000;

export const bounded = (text: string): string =>
  text.length > ANSWER_CHARACTERS ? `${text.slice(0, ANSWER_CHARACTERS)}…` : text;

const asText = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");

const messagesOf = (values: unknown): Record<string, unknown>[] => {
  const messages = isObject(values) ? values["messages"] : undefined;
  return Array.isArray(messages) ? (messages as unknown[]).filter(isObject) : [];
};

/** The text of the last message if a model wrote it, else all values as JSON. */
export const answerIn = (values: unknown): string => {
  const last = messagesOf(values).at(-1);
  const said = last?.["type"] === "ai" || last?.["role"] === "assistant" ? contentText(last["content"]) : "";
  return bounded(said === "" ? asText(values) : said);
};

/** The questions of interrupts as text; undefined if the graph did not ask. */
export const questionIn = (values: unknown): string | undefined => {
  const interrupts = isObject(values) ? values["__interrupt__"] : undefined;
  if (!Array.isArray(interrupts) || interrupts.length === 0) return undefined;
  const asked = (interrupts as unknown[]).map((each) => (isObject(each) ? each["value"] : each));
  return bounded(asked.map(asText).join("\n"));
};

export const tokensIn = (values: unknown): number =>
  messagesOf(values).reduce((sum, message) => sum + tokensOf(message), 0);
