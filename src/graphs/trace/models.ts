import { errorFields } from "./errors.ts";
import { marks, scopeOf, type ModelUsage, type OpenSpan, type TraceScope } from "./scope.ts";

/** The parts of LangChain's results (1.2.13) used here. */
interface Message {
  usage_metadata?: {
    input_tokens?: number;
    output_tokens?: number;
    input_token_details?: { cache_read?: number; cache_creation?: number };
    output_token_details?: { reasoning?: number };
  };
  response_metadata?: Record<string, unknown>;
}
interface Result {
  generations?: { message?: Message; generationInfo?: Record<string, unknown> }[][];
  llmOutput?: { tokenUsage?: { promptTokens?: number; completionTokens?: number } };
}
interface CallbackManager {
  copy(handlers: readonly object[], inherit: boolean): unknown;
}
interface CallOptions {
  callbacks?: readonly object[] | CallbackManager;
}
interface Model {
  generate(messages: unknown, options?: unknown, callbacks?: CallOptions["callbacks"]): unknown;
  _streamIterator(input: unknown, options?: unknown): unknown;
}

const TRACES = Symbol.for("threadloom.traces-models");

const MODEL_LENGTH_AT_MOST = 100;
/** Of one call: sums of any number of calls fit into PostgreSQL's `bigint`. */
const TOKENS_AT_MOST = 1_000_000_000;

/** The first text of these, as PostgreSQL can store it: without NUL and lone surrogates. */
const firstText = (...values: unknown[]): string | undefined => {
  const found = values.find((value) => typeof value === "string" && value !== "");
  return (found as string | undefined)
    ?.slice(0, MODEL_LENGTH_AT_MOST)
    .toWellFormed()
    .replaceAll("\0", "\uFFFD");
};

const count = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? Math.min(value, TOKENS_AT_MOST) : 0;

const usageIn = (
  model: string,
  message: Message | undefined,
  { llmOutput }: Result,
): ModelUsage | undefined => {
  const used = message?.usage_metadata;
  const older = llmOutput?.tokenUsage;
  if (used === undefined && older === undefined) return undefined;
  const read = count(used?.input_token_details?.cache_read);
  const created = count(used?.input_token_details?.cache_creation);
  return {
    model,
    // Some models leave the cached tokens out.
    input_tokens: Math.max(count(used?.input_tokens ?? older?.promptTokens), read + created),
    output_tokens: count(used?.output_tokens ?? older?.completionTokens),
    cache_read_tokens: read,
    cache_creation_tokens: created,
    reasoning_tokens: count(used?.output_token_details?.reasoning),
  };
};

interface OpenCall {
  span: OpenSpan;
  /** As the call asks for it. */
  model: string;
  firstTokenAt: number | undefined;
}

type Metadata = Record<string, unknown> | undefined;

/** A callback handler of LangChain, given to single calls of models. */
class ModelCalls {
  readonly name = "threadloom_trace";
  readonly awaitHandlers = true;
  readonly raiseError = false;
  readonly ignoreLLM = false;
  readonly ignoreChain = true;
  readonly ignoreAgent = true;
  readonly ignoreRetriever = true;
  readonly ignoreCustomEvent = true;
  private readonly calls = new Map<string, OpenCall>();

  constructor(private readonly scope: TraceScope) {}

  handleChatModelStart(
    serialized: { id?: unknown[] } | undefined,
    messages: unknown,
    callId: string,
    _parent: unknown,
    extra: { invocation_params?: { model?: unknown; model_name?: unknown } } | undefined,
    _tags: unknown,
    metadata: Metadata,
    runName: unknown,
  ): void {
    const asked = extra?.invocation_params;
    const model =
      firstText(
        metadata?.["ls_model_name"],
        asked?.model,
        asked?.model_name,
        runName,
        serialized?.id?.at(-1),
      ) ?? "unknown";
    const provider = firstText(metadata?.["ls_provider"]);
    const span = this.scope.begin("model", model, provider === undefined ? undefined : { provider });
    span.said("input", () => (messages as unknown[] | undefined)?.[0]);
    this.calls.set(callId, { span, model, firstTokenAt: undefined });
  }

  handleLLMNewToken(_token: unknown, _index: unknown, callId: string): void {
    const call = this.calls.get(callId);
    if (call !== undefined) call.firstTokenAt ??= this.scope.now();
  }

  handleLLMEnd(result: Result, callId: string): void {
    const call = this.calls.get(callId);
    if (call === undefined) return;
    this.calls.delete(callId);
    const generation = result.generations?.[0]?.[0];
    const answered = generation?.message?.response_metadata ?? {};
    const model = firstText(answered["model_name"], answered["model"]) ?? call.model;
    const usage = usageIn(model, generation?.message, result);
    const stop = firstText(
      answered["finish_reason"],
      answered["stop_reason"],
      generation?.generationInfo?.["finish_reason"],
    );
    if (usage !== undefined) this.scope.used(usage);
    call.span.said("output", () => [generation?.message]);
    call.span.end("success", {
      model,
      ...(call.firstTokenAt === undefined ? {} : { first_token_ms: call.firstTokenAt }),
      ...(stop === undefined ? {} : { stop_reason: stop }),
      ...(usage === undefined ? {} : { usage: withoutModel(usage) }),
    });
  }

  handleLLMError(error: unknown, callId: string): void {
    this.calls.get(callId)?.span.end("error", errorFields(error));
    this.calls.delete(callId);
  }
}

const withoutModel = ({ model: _model, ...tokens }: ModelUsage) => tokens;

const joined = (callbacks: CallOptions["callbacks"], handler: ModelCalls): unknown => {
  if (callbacks == null) return [handler];
  if ("copy" in callbacks) return callbacks.copy([handler], false);
  return [...callbacks, handler];
};

/**
 * Patches the methods that each call of a chat model passes. Only these calls get a callback, because callbacks of the
 * whole run are slow.
 * @param module `@langchain/core/language_models/chat_models`
 */
export const traceModels = (module: unknown, currentConfig: () => unknown): void => {
  const { BaseChatModel } = module as { BaseChatModel?: { prototype: Model } };
  const owner = BaseChatModel?.prototype;
  if (owner === undefined || typeof owner.generate !== "function" || !marks(owner, TRACES)) return;
  const { generate, _streamIterator: stream } = owner;

  const traced = (options: unknown, callbacks?: CallOptions["callbacks"]): CallOptions | undefined => {
    const current = currentConfig();
    const scope = scopeOf(options) ?? scopeOf(current);
    if (scope === undefined) return undefined;
    const given = (Array.isArray(options) ? { stop: options as unknown } : options) as
      CallOptions | undefined;
    const known = given?.callbacks ?? callbacks ?? (current as CallOptions | undefined)?.callbacks;
    return { ...given, callbacks: joined(known, new ModelCalls(scope)) as readonly object[] };
  };
  const generating: Model["generate"] = function (this: Model, messages, options, callbacks) {
    const with_ = traced(options, callbacks);
    return with_ === undefined
      ? generate.call(this, messages, options, callbacks)
      : generate.call(this, messages, with_);
  };
  const streaming: Model["_streamIterator"] = function (this: Model, input, options) {
    return stream.call(this, input, traced(options) ?? options);
  };
  // With the marks of other patches.
  owner.generate = Object.assign(generating, generate);
  owner._streamIterator = Object.assign(streaming, stream);
};
