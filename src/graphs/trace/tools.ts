import { errorFields } from "./errors.ts";
import { isBubblingUp, marks, scopeOf, TRACE_SCOPE, type OpenSpan, type TraceScope } from "./scope.ts";
import { shownValue } from "./shown-values.ts";

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

const TRACES = Symbol.for("threadloom.traces-tools");

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
  if (owner === undefined || typeof owner.call !== "function" || !marks(owner, TRACES)) return;
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
