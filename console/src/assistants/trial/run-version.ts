import type { Assistant, AssistantVersion, Client, Config } from "@langchain/langgraph-sdk";
import { isObject } from "../../parts/is-object.ts";
import { messageOf } from "../../server/connection.tsx";
import { contentText, tokensOf } from "../../parts/message-text.ts";
import { answerIn, bounded, questionIn, tokensIn } from "./answer.ts";

export interface Trial {
  status: "running" | "success" | "interrupted" | "error" | "stopped";
  answer: string;
  milliseconds?: number;
  /** Undefined if no model reported any. */
  tokens?: number | undefined;
  error?: string;
}

export interface Target {
  version: number;
  assistantId: string;
  context?: unknown;
  config?: Config;
}

type Versioned = Pick<AssistantVersion, "version" | "graph_id" | "config" | "context">;

/**
 * A version that is not active runs on the default assistant of its graph (docs/decisions/088).
 * @param defaults what the graph sets itself in place of the default assistant's context
 */
export const targetOf = (
  { assistant_id, version: active }: Pick<Assistant, "assistant_id" | "version">,
  { version, graph_id, config, context }: Versioned,
  defaults: object,
): Target =>
  version === active
    ? { version, assistantId: assistant_id }
    : {
        ...{ version, assistantId: graph_id, config },
        context: { ...defaults, ...(isObject(context) && context) },
      };

const errorText = (data: unknown): string => {
  const [kind, message] = isObject(data) ? [data["error"], data["message"]] : [undefined, data];
  return [kind, message]
    .filter((part) => typeof part === "string" && part !== "")
    .join(": ")
    .slice(0, 1_000);
};

/** Collects the tokens and the text of the message that is being written. */
const createReader = () => {
  let messageId: unknown;
  let text = "";
  let tokens = 0;
  return {
    add(message: unknown): string {
      if (!isObject(message)) return text;
      tokens += tokensOf(message);
      if (message["id"] !== messageId) text = "";
      messageId = message["id"];
      const type = message["type"];
      if (type === "ai" || type === "AIMessageChunk") text = bounded(text + contentText(message["content"]));
      return text;
    },
    tokens: () => tokens,
  };
};

/** Runs without a thread, so nothing is left behind. Never rejects. */
export const runVersion = async (
  client: Client,
  { assistantId, context, config }: Target,
  input: unknown,
  { signal, onText }: { signal: AbortSignal; onText?(text: string): void },
): Promise<Trial> => {
  const started = performance.now();
  const reader = createReader();
  let values: unknown;
  let written = "";
  const ended = (rest: Pick<Trial, "status" | "answer" | "error">): Trial => ({
    ...rest,
    milliseconds: performance.now() - started,
    tokens: reader.tokens() || tokensIn(values) || undefined,
  });
  try {
    const events = client.runs.stream(null, assistantId, {
      input: input as Record<string, unknown>,
      ...(context !== undefined && { context }),
      ...(config !== undefined && { config }),
      streamMode: ["values", "messages-tuple"],
      onDisconnect: "cancel",
      signal,
    }) as AsyncIterable<{ event: string; data: unknown }>;
    for await (const { event, data } of events) {
      if (event === "values") values = data;
      if (event === "messages" && Array.isArray(data)) {
        written = reader.add((data as unknown[])[0]);
        onText?.(written);
      }
      if (event === "error") return ended({ status: "error", answer: written, error: errorText(data) });
    }
  } catch (error) {
    if (!signal.aborted) return ended({ status: "error", answer: written, error: messageOf(error) });
  }
  if (signal.aborted) return ended({ status: "stopped", answer: written });
  const question = questionIn(values);
  return question === undefined
    ? ended({ status: "success", answer: answerIn(values) })
    : ended({ status: "interrupted", answer: question });
};
