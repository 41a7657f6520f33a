import {
  context,
  SpanKind as OtelKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
} from "@opentelemetry/api";
import { ATTRIBUTES, OPERATIONS, SPANS } from "../../platform/telemetry/names.ts";
import { contextOf, tracer, type TraceContext } from "../../platform/telemetry/telemetry.ts";
import type { OpenSpan, SpanFields, SpanKind, SpanStatus } from "./scope.ts";
import { shownValue } from "./shown-values.ts";

/** How the spans of an attempt are exported. JSON, for graph processes. */
export interface SpanExport {
  /** Of the attempt's span. */
  parent: TraceContext;
  /** Whether arguments, results and messages are exported. */
  contents: boolean;
}

/** Begins spans below one. */
export interface ExportedParent {
  /** `startMs`: since the attempt began. */
  begin(kind: SpanKind, name: string, fields: SpanFields | undefined, startMs: number): ExportedSpan;
  run: OpenSpan["run"];
}

export interface ExportedSpan extends Pick<OpenSpan, "run" | "said"> {
  readonly children: ExportedParent;
  end(status: SpanStatus, fields: SpanFields | undefined): void;
}

/** Of one call; the newest count. */
const MESSAGES_AT_MOST = 50;
/** Of one message. */
const TOOL_CALLS_AT_MOST = 20;
const ROLE_LENGTH_AT_MOST = 100;
/** Of all messages of one call, in characters. */
const MESSAGES_LENGTH_AT_MOST = 65_536;
const MS_PER_SECOND = 1_000;

interface Fields {
  provider?: string;
  model?: string;
  usage?: Record<string, number>;
  stop_reason?: string;
  first_token_ms?: number;
  tool_call_id?: string;
  arguments?: string;
  result?: string;
  error?: { type: string; message: string };
}

/* The SDK leaves out attributes that are undefined. */

const beginning = (kind: SpanKind, name: string, { provider, tool_call_id }: Fields): Attributes => {
  if (kind === "node") return { [ATTRIBUTES.node]: name };
  if (kind === "tool")
    return {
      [ATTRIBUTES.operation]: OPERATIONS.tool,
      [ATTRIBUTES.tool]: name,
      [ATTRIBUTES.toolCallId]: tool_call_id,
    };
  return {
    [ATTRIBUTES.operation]: OPERATIONS.model,
    [ATTRIBUTES.requestModel]: name,
    [ATTRIBUTES.provider]: provider,
  };
};

const ending = (
  startMs: number,
  { model, usage, stop_reason, first_token_ms, error }: Fields,
): Attributes => ({
  [ATTRIBUTES.responseModel]: model,
  [ATTRIBUTES.finishReasons]: stop_reason === undefined ? undefined : [stop_reason],
  [ATTRIBUTES.timeToFirstToken]:
    first_token_ms === undefined ? undefined : (first_token_ms - startMs) / MS_PER_SECOND,
  [ATTRIBUTES.inputTokens]: usage?.["input_tokens"],
  [ATTRIBUTES.outputTokens]: usage?.["output_tokens"],
  [ATTRIBUTES.cacheReadTokens]: usage?.["cache_read_tokens"],
  [ATTRIBUTES.cacheCreationTokens]: usage?.["cache_creation_tokens"],
  [ATTRIBUTES.reasoningTokens]: usage?.["reasoning_tokens"],
  [ATTRIBUTES.errorType]: error?.type,
});

const ROLES: ReadonlyMap<unknown, string> = new Map([
  ["human", "user"],
  ["ai", "assistant"],
]);

interface Message {
  type?: unknown;
  content?: unknown;
  tool_calls?: unknown;
}

/** By the conventions' schema of messages. */
const messageAsJson = (given: unknown): string => {
  try {
    const { type, content, tool_calls: calls } = given as Message;
    const shownCalls = Array.isArray(calls) ? (calls as unknown[]).slice(0, TOOL_CALLS_AT_MOST) : [];
    return JSON.stringify({
      role: ROLES.get(type) ?? String(type).slice(0, ROLE_LENGTH_AT_MOST),
      parts: [
        { type: "text", content: shownValue(content) },
        ...shownCalls.map((call) => ({ type: "tool_call", content: shownValue(call) })),
      ],
    });
  } catch {
    // Reading the messages of a graph may throw.
    return '{"role":"unknown","parts":[]}';
  }
};

const messagesAsJson = (value: () => unknown): string => {
  try {
    const given = value();
    const newest = Array.isArray(given) ? (given as unknown[]).slice(-MESSAGES_AT_MOST) : [];
    const shown: string[] = [];
    let length = 0;
    for (const message of newest.reverse()) {
      const json = messageAsJson(message);
      length += json.length;
      if (length > MESSAGES_LENGTH_AT_MOST) break;
      shown.unshift(json);
    }
    return `[${shown.join(",")}]`;
  } catch {
    // As above: the list itself may throw, too.
    return "[]";
  }
};

const NAMES = { node: SPANS.node, model: SPANS.model, tool: SPANS.tool } as const;

const below = (parent: Context, contents: boolean): ExportedParent => ({
  run: (work) => context.with(parent, work),
  begin(kind, name, fields = {}, startMs) {
    const attributes = beginning(kind, name, fields);
    if (contents && typeof fields["arguments"] === "string")
      attributes[ATTRIBUTES.toolArguments] = fields["arguments"];
    const otelKind = kind === "model" ? OtelKind.CLIENT : OtelKind.INTERNAL;
    const span = tracer().startSpan(NAMES[kind](name), { kind: otelKind, attributes }, parent);
    const inside = trace.setSpan(parent, span);
    const children = below(inside, contents);
    return {
      children,
      run: children.run,
      said(direction, value) {
        if (!contents || !span.isRecording()) return;
        const attribute = direction === "input" ? ATTRIBUTES.inputMessages : ATTRIBUTES.outputMessages;
        span.setAttribute(attribute, messagesAsJson(value));
      },
      end(status, further = {}) {
        const ended = further as Fields;
        span.setAttributes(ending(startMs, ended));
        if (contents && ended.result !== undefined) span.setAttribute(ATTRIBUTES.toolResult, ended.result);
        if (status === "interrupted") span.setAttribute(ATTRIBUTES.interrupted, true);
        if (status === "error")
          span.setStatus({
            code: SpanStatusCode.ERROR,
            ...(contents && ended.error !== undefined ? { message: ended.error.message } : {}),
          });
        span.end();
      },
    };
  },
});

export const exportedBelow = ({ parent, contents }: SpanExport): ExportedParent =>
  below(contextOf(parent), contents);
