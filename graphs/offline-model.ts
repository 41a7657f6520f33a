/**
 * A chat model that needs no key and no network: it follows a few plain rules, so that the same question
 * always gets the same answer. It is a real chat model all the same: it streams token by token, calls the
 * tools bound to it, follows the system prompt, and stops when the run is cancelled.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BaseChatModelParams,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";

interface OfflineCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
}

interface OfflineModelParams extends BaseChatModelParams {
  /** Pause after each token, so that streaming can be seen. Default 10 ms. */
  tokenDelayMs?: number;
}

export class OfflineModel extends BaseChatModel<OfflineCallOptions, AIMessageChunk> {
  private readonly tokenDelayMs: number;

  constructor({ tokenDelayMs = 10, ...params }: OfflineModelParams = {}) {
    super(params);
    this.tokenDelayMs = tokenDelayMs;
  }

  override _llmType(): string {
    return "offline";
  }

  override bindTools(
    tools: BindToolsInput[],
    options?: Partial<OfflineCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, OfflineCallOptions> {
    return this.withConfig({ ...options, tools });
  }

  override async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    let whole: ChatGenerationChunk | undefined;
    for await (const chunk of this._streamResponseChunks(messages, options, manager)) {
      whole = whole ? whole.concat(chunk) : chunk;
    }
    return { generations: whole ? [whole] : [] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    // Every chunk of a message carries the same id: it is also the id of the message in the state.
    const id = `run-${randomUUID()}`;
    const parts = [...reply(messages, toolNames(options.tools ?? []))];
    for (const [index, part] of parts.entries()) {
      const isLast = index === parts.length - 1;
      const message = new AIMessageChunk({
        id,
        ...part,
        ...(isLast && { usage_metadata: usage(messages, parts.length) }),
      });
      const chunk = new ChatGenerationChunk({ text: message.text, message });
      yield chunk;
      await manager?.handleLLMNewToken(message.text, undefined, undefined, undefined, undefined, { chunk });
      if (this.tokenDelayMs > 0) await pause(this.tokenDelayMs, undefined, { signal: options.signal });
    }
  }
}

type ReplyPart = Pick<AIMessageChunk, "content" | "tool_call_chunks" | "response_metadata">;

/** The answer in the parts in which it is streamed. */
function* reply(messages: BaseMessage[], tools: string[]): Generator<Partial<ReplyPart>> {
  const response_metadata = { model_name: "offline", model_provider: "offline" };
  const calls = messages.at(-1)?.type === "human" ? toolCalls(lastQuestion(messages), tools) : [];
  if (calls.length > 0) {
    yield { content: "", tool_call_chunks: calls, response_metadata };
    return;
  }
  const [first = "", ...rest] = answer(messages, tools).split(/(?<=\s)/);
  yield { content: first, response_metadata };
  for (const token of rest) yield { content: token };
}

/** As most providers, the model reports its usage at the end of its answer. Its tokens are words. */
function usage(messages: BaseMessage[], output_tokens: number) {
  const input_tokens = messages.flatMap(({ text }) => text.match(/\S+/g) ?? []).length;
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
}

/** The tools that the question asks for and that may be used. */
function toolCalls(question: string, tools: string[]): NonNullable<AIMessageChunk["tool_call_chunks"]> {
  const asked = [
    { name: "get_weather", args: { place: weatherPlace(question) } },
    { name: "calculate", args: { expression: sum(question) } },
  ].filter(({ name, args }) => tools.includes(name) && Object.values(args)[0] !== undefined);
  return asked.map(({ name, args }, index) => ({
    type: "tool_call_chunk",
    index,
    id: `call_${randomUUID()}`,
    name,
    args: JSON.stringify(args),
  }));
}

function answer(messages: BaseMessage[], tools: string[]): string {
  const instructions = messages.filter(({ type }) => type === "system").map(({ text }) => text);
  const { greeting, signature } = manner(instructions.join("\n"));
  return [greeting, statement(messages, tools), signature].filter(Boolean).join(" ");
}

function statement(messages: BaseMessage[], tools: string[]): string {
  const results = messages.slice(messages.findLastIndex(({ type }) => type !== "tool") + 1);
  if (results.length > 0) return results.map(({ text }) => text).join(" ");

  const question = lastQuestion(messages);
  if (weatherPlace(question)) return "I can't look up the weather: I was not given the tool get_weather.";
  if (sum(question)) return "I can't do sums: I was not given the tool calculate.";
  const told = messages.filter(({ type }) => type === "human").map(({ text }) => text);
  const name = told.map((text) => /my name is (\p{L}+)/iu.exec(text)?.[1]).findLast(Boolean);
  if (name && /my name/i.test(question)) return `Your name is ${name}.`;
  const abilities = tools.length > 0 ? `I can use: ${tools.join(", ")}.` : "I have no tools.";
  return `You said: "${question}". ${abilities}`;
}

const GREETINGS = { french: "Bonjour!", german: "Guten Tag!", spanish: "¡Hola!", italian: "Buongiorno!" };

/** How the system prompt shows in an answer: the language it names greets, and the persona it names signs. */
function manner(instructions: string): { greeting: string; signature: string } {
  const language = Object.entries(GREETINGS).find(([name]) => new RegExp(name, "i").test(instructions));
  const persona = /you are (?:an? |the )?([^.,;\n]+)/i.exec(instructions)?.[1]?.trim();
  return { greeting: language?.[1] ?? "", signature: persona ? `— ${persona}` : "" };
}

const lastQuestion = (messages: BaseMessage[]): string =>
  messages.findLast(({ type }) => type === "human")?.text ?? "";

const weatherPlace = (question: string): string | undefined =>
  /weather\b.*?\b(?:in|at|for)\s+(\p{L}[\p{L}' -]*?)(?=\s+(?:and|today|tomorrow|now)\b|[^\p{L}' -]|$)/iu.exec(
    question,
  )?.[1];

const sum = (question: string): string | undefined =>
  /[-(]*\d[\d\s.()]*[-+*/][-+*/\d\s.()]*[\d)]/.exec(question)?.[0].trim();

const toolNames = (tools: BindToolsInput[]): string[] =>
  tools.flatMap((tool) => ("name" in tool && typeof tool.name === "string" ? [tool.name] : []));
