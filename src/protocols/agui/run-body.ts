import { isDeepStrictEqual } from "node:util";
import type { Message, ResumeEntry, RunAgentInput } from "@ag-ui/core";
import { invalid } from "../../platform/domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import { isInherited, ownField } from "../../platform/lib/names.ts";
import type { Call } from "../calls/start.ts";
import { forwarded } from "./schemas.ts";
import { toLangChainMessages, toolsOf } from "./messages.ts";
import { ANSWERS, CLIENT_RUN_ID, LAST_MESSAGE } from "./repository.ts";

type Body = Call["body"];

/** Keys of the input that the client's `state` does not set. */
const OWN_KEYS = ["messages", "tools", "copilotkit", "ag-ui"];
/** Given to graphs whose input has none of the keys for tools and context. */
const CONFIGURABLE_KEY = "ag-ui";

export interface Keys {
  has(key: string): boolean;
}

/** Keys that the graph's input may have. A schema without properties says nothing. */
export const inputKeys = (schema: JsonObject): Keys => {
  const { properties } = schema;
  const known = new Set(isJsonObject(properties) ? Object.keys(properties) : []);
  return {
    has: (key) => !isInherited(key) && (known.size === 0 ? !OWN_KEYS.slice(1).includes(key) : known.has(key)),
  };
};

/** The client sends back the whole state: keys that it has not changed would pass through reducers again. */
export const changedState = ({ state }: RunAgentInput, values: JsonObject, keys: Keys): JsonObject =>
  isJsonObject(state)
    ? Object.fromEntries(
        Object.entries(state).filter(
          ([key, value]) =>
            !OWN_KEYS.includes(key) && keys.has(key) && !isDeepStrictEqual(value, ownField(values, key)),
        ),
      )
    : {};

const pick = (props: Record<string, unknown>, ...names: string[]): unknown =>
  names.map((name) => ownField(props, name)).find((value) => value != null);

/** The fields of the run's body that do not depend on the plan. */
const commonBody = (input: RunAgentInput): Body => {
  const props = forwarded(input);
  const last = input.messages.at(-1)?.id;
  return {
    config: pick(props, "config"),
    context: pick(props, "context"),
    multitask_strategy: pick(props, "multitask_strategy", "multitaskStrategy"),
    // Messages and custom events of subgraphs are included without being asked for.
    stream_mode: ["values", "half-done", "messages-tuple", "steps", "custom"],
    stream_resumable: true,
    metadata: {
      [CLIENT_RUN_ID]: input.runId,
      ...(last === undefined ? {} : { [LAST_MESSAGE]: last }),
    },
  } as Body;
};

const withConfigurable = (config: unknown, toolsAndContext: JsonObject): JsonObject => {
  const given = isJsonObject(config) ? config : {};
  const configurable = isJsonObject(given["configurable"]) ? given["configurable"] : {};
  return { ...given, configurable: { [CONFIGURABLE_KEY]: toolsAndContext, ...configurable } };
};

/** Tools and context where the graph can see them: in its input, else in its configuration. */
const toolsAndContextOf = (
  { tools, context }: RunAgentInput,
  keys: Keys,
): { input: JsonObject; beside?: JsonObject } => {
  const given = toolsOf(tools);
  const described = context.map(({ description, value }) => ({ description, value }));
  const all: JsonObject = {
    tools: given,
    copilotkit: { actions: given, context: described },
    "ag-ui": { tools: given, context: described },
  };
  const input = Object.fromEntries(Object.entries(all).filter(([key]) => keys.has(key)));
  if (Object.keys(input).length > 0) return { input };
  return given.length + described.length === 0
    ? { input }
    : { input, beside: { tools: given, context: described } };
};

export const startBody = (
  input: RunAgentInput,
  { messages, state, keys }: { messages: readonly Message[]; state: JsonObject; keys: Keys },
): Body => {
  const common = commonBody(input);
  const toolsAndContext = toolsAndContextOf(input, keys);
  const conversation = keys.has("messages") ? { messages: toLangChainMessages(messages) } : {};
  return {
    ...common,
    ...(toolsAndContext.beside === undefined
      ? {}
      : { config: withConfigurable(common.config, toolsAndContext.beside) as Body["config"] }),
    input: { ...state, ...toolsAndContext.input, ...conversation },
  };
};

/** The result of the graph's `interrupt()`. A person who declined sends no payload, so the graph must see that. */
const answerOf = ({ interruptId, status, payload }: ResumeEntry): JsonValue =>
  status === "resolved"
    ? ((payload ?? null) as JsonValue)
    : { __agui_cancelled__: true, interrupt_id: interruptId };

/** Answers by the ids of the interrupts. */
export const resumeBody = (
  input: RunAgentInput,
  resume: readonly ResumeEntry[],
  answers: readonly string[],
): Body => {
  const common = commonBody(input);
  const command = ownField(forwarded(input), "command");
  return {
    ...common,
    command: {
      ...(isJsonObject(command) ? command : {}),
      resume: Object.fromEntries(resume.map((entry) => [entry.interruptId, answerOf(entry)])),
    } as Body["command"],
    metadata: { ...common.metadata, [ANSWERS]: [...answers] },
  };
};

/** `forwardedProps.command` of the older dialect; undefined if it answers nothing. */
export const commandOf = (input: RunAgentInput): JsonObject | undefined => {
  const command = ownField(forwarded(input), "command");
  return isJsonObject(command) && command["resume"] != null ? command : undefined;
};

/** The older client writes its answer as JSON, or as bare text. */
const parsed = (resume: JsonValue | undefined): JsonValue | undefined => {
  if (typeof resume !== "string") return resume;
  try {
    return JSON.parse(resume) as JsonValue;
  } catch {
    return resume;
  }
};

export const commandBody = (input: RunAgentInput, command: JsonObject): Body => {
  const resume = parsed(command["resume"]);
  if (resume == null) throw invalid("'forwardedProps.command.resume': LangGraph takes null for no answer.");
  return { ...commonBody(input), command: { ...command, resume } as Body["command"] };
};
