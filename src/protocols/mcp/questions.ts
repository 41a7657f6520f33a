import type { ClientCapabilities, InputRequests } from "@modelcontextprotocol/server";
import { parseBody } from "../../http/bodies.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import type { Interrupt } from "../calls/outcome.ts";
import type { Task } from "../calls/tasks.ts";

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

export interface Answers {
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
