import { errorFields, shownValue } from "./shown-values.ts";
import {
  isBubblingUp,
  marks,
  scopeOf,
  TRACE_SCOPE,
  type SpanStatus,
  type TraceScope,
  type ModelUsage,
  type OpenSpan,
} from "./scope.ts";

/** The parts of LangGraph's loop and tasks (1.4.18) used here. */
interface Task {
  name: string | symbol;
  writes: readonly unknown[];
  proc: Proc;
}
interface Proc {
  invoke(input: unknown, config: TaskConfig): Promise<unknown>;
}
interface TaskConfig {
  configurable?: Record<string | symbol, unknown>;
}
interface Loop {
  tasks: Record<string, Task>;
  tick(options: unknown): Promise<boolean>;
  acceptPush?(...given: unknown[]): Promise<Task | undefined>;
  scheduleErrorHandler?(...given: unknown[]): Task | undefined;
}
interface LoopRunner {
  _runLoop(parameters: { loop: Loop; config?: unknown }): Promise<unknown>;
}

const TRACES_NODES = Symbol.for("threadloom.traces-nodes");

/** Only writes the input. */
const START = "__start__";

const statusOf = (error: unknown): SpanStatus => {
  if (!isBubblingUp(error)) return "error";
  return (error as Error).name === "ParentCommand" ? "success" : "interrupted";
};

/** A span for each try of the task: LangGraph calls `invoke` again to retry. */
class TracedProc implements Proc {
  /** Inside the span of the newest try. */
  inside: TraceScope | undefined;

  constructor(
    readonly proc: Proc,
    private readonly name: string,
    private readonly scope: TraceScope,
  ) {}

  async invoke(input: unknown, config: TaskConfig): Promise<unknown> {
    const span = this.scope.begin("node", this.name);
    this.inside = span.scope;
    try {
      const configurable = { ...config.configurable, [TRACE_SCOPE]: span.scope };
      const result = await span.run(() => this.proc.invoke(input, { ...config, configurable }));
      span.end("success");
      return result;
    } catch (error) {
      const status = statusOf(error);
      span.end(status, status === "error" ? errorFields(error) : undefined);
      throw error;
    }
  }
}

const traceTask = (task: Task | undefined, scope: TraceScope): void => {
  if (task === undefined || task.name === START || task.writes.length > 0) return;
  if (task.proc instanceof TracedProc) return;
  task.proc = new TracedProc(task.proc, String(task.name), scope);
};

const traceLoop = (loop: Loop, scope: TraceScope): void => {
  const tick = loop.tick.bind(loop);
  loop.tick = async (options) => {
    const goesOn = await tick(options);
    if (goesOn) for (const id in loop.tasks) traceTask(loop.tasks[id], scope);
    return goesOn;
  };
  // Tasks of the functional API.
  const acceptPush = loop.acceptPush?.bind(loop);
  if (acceptPush !== undefined)
    loop.acceptPush = async (...given) => {
      const task = await acceptPush(...given);
      const { proc } = given[0] as Task;
      traceTask(task, (proc instanceof TracedProc ? proc.inside : undefined) ?? scope);
      return task;
    };
  const scheduleErrorHandler = loop.scheduleErrorHandler?.bind(loop);
  if (scheduleErrorHandler !== undefined)
    loop.scheduleErrorHandler = (...given) => {
      const task = scheduleErrorHandler(...given);
      traceTask(task, scope);
      return task;
    };
};

/**
 * Wraps a private method of LangGraph's common class, because nothing else reaches subgraphs. Callbacks would: they cost a
 * run of two nodes 12 % of the server's CPU (docs/decisions/081-traces.md).
 * @param module `@langchain/langgraph/pregel`
 * @throws if this release of LangGraph lacks the method
 */
export const traceNodes = (module: unknown): void => {
  const { Pregel } = module as { Pregel?: { prototype: LoopRunner } };
  const owner = Pregel?.prototype;
  if (typeof owner?._runLoop !== "function")
    throw new Error("This release of LangGraph is not supported: its graphs have no method '_runLoop'.");
  if (!marks(owner, TRACES_NODES)) return;
  const runLoop = owner._runLoop;
  const tracing: LoopRunner["_runLoop"] = function (this: unknown, parameters) {
    const scope = scopeOf(parameters.config);
    if (scope?.tracesNodes === true) traceLoop(parameters.loop, scope);
    return runLoop.call(this, parameters);
  };
  // With the marks of other patches.
  owner._runLoop = Object.assign(tracing, runLoop);
};

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

const TRACES_MODELS = Symbol.for("threadloom.traces-models");

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
  if (owner === undefined || typeof owner.generate !== "function" || !marks(owner, TRACES_MODELS)) return;
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

/** The part of LangChain's `StructuredTool` (1.2.13) used here. */
interface Tool {
  name: string;
  call(argument: unknown, config?: unknown, tags?: unknown): Promise<unknown>;
}
interface ToolCall {
  id?: string;
  args?: unknown;
  type?: unknown;
}
interface ToolConfig {
  configurable?: object;
  toolCall?: ToolCall;
}

const TRACES_TOOLS = Symbol.for("threadloom.traces-tools");

const asToolCall = (value: unknown): ToolCall | undefined =>
  typeof value === "object" && value !== null && (value as ToolCall).type === "tool_call"
    ? (value as ToolCall)
    : undefined;

/** The part that a model sees. `status`: of a `ToolMessage`. */
const resultOf = (result: unknown): { result: string; hasFailed: boolean } => {
  try {
    const { content = result, status } = (result ?? {}) as { content?: unknown; status?: unknown };
    return { result: shownValue(content), hasFailed: status === "error" };
  } catch {
    // Reading the result of a graph may throw.
    return { result: "(can't be shown)", hasFailed: false };
  }
};

const beginCall = (scope: TraceScope, name: string, argument: unknown, config?: ToolConfig): OpenSpan => {
  let fields: { tool_call_id?: string; arguments?: string } = {};
  try {
    const { id, args = argument } = asToolCall(argument) ?? config?.toolCall ?? {};
    fields = {
      ...(typeof id === "string" ? { tool_call_id: id.slice(0, 100).toWellFormed() } : {}),
      arguments: shownValue(args),
    };
  } catch {
    // As in `resultOf`.
  }
  return scope.begin("tool", name, fields);
};

/**
 * Patches `StructuredTool.prototype.call`, which each call of a tool passes.
 * @param module `@langchain/core/tools`
 */
export const traceTools = (module: unknown, currentConfig: () => unknown): void => {
  const { StructuredTool } = module as { StructuredTool?: { prototype: Tool } };
  const owner = StructuredTool?.prototype;
  if (owner === undefined || typeof owner.call !== "function" || !marks(owner, TRACES_TOOLS)) return;
  const call = owner.call;
  const tracing: Tool["call"] = async function (this: Tool, argument, given, tags) {
    const config = (given ?? currentConfig()) as ToolConfig | undefined;
    const scope = scopeOf(config) ?? scopeOf(currentConfig());
    if (scope === undefined) return await call.call(this, argument, given, tags);
    const span = beginCall(scope, this.name, argument, config);
    const configurable = { ...config?.configurable, [TRACE_SCOPE]: span.scope };
    try {
      const result = await span.run(() => call.call(this, argument, { ...config, configurable }, tags));
      const { hasFailed, ...shown } = resultOf(result);
      span.end(hasFailed ? "error" : "success", shown);
      return result;
    } catch (error) {
      if (isBubblingUp(error)) span.end("interrupted");
      else span.end("error", errorFields(error));
      throw error;
    }
  };
  owner.call = tracing;
};
