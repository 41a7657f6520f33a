/**
 * Where code of a graph runs: inside which span. LangGraph copies `configurable` into nodes, subgraphs, models and tools,
 * symbols included; JSON and checkpoints leave symbols out.
 */

import type { ModelUsage } from "../project/usage.ts";

export type { ModelUsage };

export type SpanKind = "node" | "model" | "tool";
/** `interrupted`: the graph asked a person. */
export type SpanStatus = "success" | "error" | "interrupted";

/** Fields of a record beyond those of each span. Values are JSON. */
export type SpanFields = Readonly<Record<string, unknown>>;

export interface OpenSpan {
  /** For code that runs inside the span. */
  readonly scope: TraceScope;
  /** Calls `work` so that its own spans of OpenTelemetry are children of this one. */
  run<Result>(work: () => Result): Result;
  /** The messages of a model's call. Calls `value` only if contents are exported. */
  said(direction: "input" | "output", value: () => unknown): void;
  /** Later calls do nothing. */
  end(status: SpanStatus, fields?: SpanFields): void;
}

export interface TraceScope {
  /** False: only calls of models and tools are counted, and nodes are left as they are. */
  readonly tracesNodes: boolean;
  /** `name` is cut to 200 characters. */
  begin(kind: SpanKind, name: string, fields?: SpanFields): OpenSpan;
  used(usage: ModelUsage): void;
  /** Milliseconds since the attempt began. */
  now(): number;
}

/**
 * True for the first caller of each mark: servers in one process share LangChain's classes. The mark is on the owner,
 * because other code may wrap the patched methods again.
 */
export const marks = (owner: object, mark: symbol): boolean =>
  !Object.hasOwn(owner, mark) && Reflect.defineProperty(owner, mark, { value: true });

/** From the symbol registry: two copies of this package may share one LangGraph. */
export const TRACE_SCOPE = Symbol.for("threadloom.trace-scope");

interface Configured {
  configurable?: { [TRACE_SCOPE]?: TraceScope };
}

/** LangGraph throws values with this property to interrupt, or to hand a command to the parent graph. */
export const isBubblingUp = (thrown: unknown): boolean => {
  try {
    return (thrown as { is_bubble_up?: unknown } | undefined)?.is_bubble_up === true;
  } catch {
    return false;
  }
};

/** Undefined outside a traced run. */
export const scopeOf = (config: unknown): TraceScope | undefined =>
  (config as Configured | undefined)?.configurable?.[TRACE_SCOPE];

interface Storage {
  AsyncLocalStorageProviderSingleton?: { getRunnableConfig?(): unknown };
}

/**
 * Finds the configuration of the surrounding node for calls without one.
 * @param module `@langchain/core/singletons`
 */
export const currentConfigIn =
  (module: unknown): (() => unknown) =>
  () =>
    (module as Storage).AsyncLocalStorageProviderSingleton?.getRunnableConfig?.();
