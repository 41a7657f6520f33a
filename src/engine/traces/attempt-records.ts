import { type SlowestNode, type TraceRecords, UsageSums } from "../../graphs/trace/recorder.ts";
import type { ModelUsage } from "../../graphs/trace/scope.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { retryPassing, unlessAlwaysCancelled } from "../../platform/database/passing-faults.ts";
import type { ServerMetrics } from "../../platform/metrics/metrics.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { RecordsOptions } from "../executors/recording.ts";
import type { AttemptRecords, AttemptSelector } from "../queue/attempts.ts";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { SpanExport } from "../../graphs/trace/exported-spans.ts";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import { ATTRIBUTES, OPERATIONS, SPANS } from "../../platform/telemetry/names.ts";
import { contextOf, traceContextOf, tracer, type TraceContext } from "../../platform/telemetry/telemetry.ts";
import type { JsonObject } from "../../platform/lib/json.ts";

/** Of which runs the spans are stored. `errors`: those that end with an error or a time-out. */
export type TracedRuns = "all" | "errors" | "off";

export interface AttemptRecordsParts {
  traces: TracedRuns;
  costOf(usage: ModelUsage): number | undefined;
  /** Does nothing if the run is gone. */
  store(attempt: AttemptSelector, records: AttemptRecords): Promise<void>;
  metrics: Pick<ServerMetrics, "modelCall" | "toolCall" | "tokensUsed">;
  logger: Logger;
}

/** After the attempt. Longer than a failover. */
const STORED_WITHIN_MS = 30_000;

/** `cost`: undefined if no model has a price. */
export interface UsageTotal {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cost: number | undefined;
}

/** Stores the records of one attempt: those of a long one in parts, the last part with the end of the run. */
export const createAttemptRecords = (
  { traces, costOf, store, metrics, logger }: AttemptRecordsParts,
  attempt: AttemptSelector,
) => {
  const startedAt = new Date();
  const total: UsageTotal = { calls: 0, input_tokens: 0, output_tokens: 0, cost: undefined };
  let part = 0;
  let spans: string[] = [];
  const usage = new UsageSums();
  let last: AttemptRecords | undefined;
  let slowestNode: SlowestNode | undefined;
  let isOver = false;
  let giveUpAt = Infinity;
  /** Undefined: nothing is being stored. */
  let storing: Promise<void> | undefined;

  /** The waiting records; undefined if there are none. */
  const take = (withSpans: boolean): AttemptRecords | undefined => {
    const text = withSpans && spans.length > 0 ? spans.join(",") : null;
    const priced = usage.take().map((used) => ({ ...used, cost: costOf(used) }));
    if (text === null && priced.length === 0) return undefined;
    const records = { part, startedAt, spans: text, usage: priced };
    part += 1;
    if (text !== null) spans = [];
    return records;
  };

  /** A refused part is lost, and the run goes on. */
  const storePart = (records: AttemptRecords): Promise<void> =>
    retryPassing(() => store(attempt, records), {
      isWanted: () => performance.now() < giveUpAt,
      after: unlessAlwaysCancelled(),
    }).catch(logFailure(logger, "a part of a run's trace could not be stored"));
  /** One part at a time: while the database is slow, the next one collects. */
  const storeWaiting = (): void => {
    if (storing !== undefined || isOver) return;
    const records = take(traces === "all");
    if (records === undefined) return;
    storing = storePart(records).then(() => {
      storing = undefined;
      storeWaiting();
    });
  };

  const end = (): void => {
    isOver = true;
    giveUpAt = performance.now() + STORED_WITHIN_MS;
  };

  const onRecords = (records: TraceRecords, isLast: boolean): void => {
    if (isOver) return;
    for (const { kind, name, seconds, failed } of records.calls)
      if (kind === "tool") metrics.toolCall({ tool: name, seconds, failed });
      else metrics.modelCall({ model: name, seconds, failed });
    slowestNode = records.slowestNode;
    if (records.spans !== "") spans.push(records.spans);
    for (const used of records.usage) {
      usage.add(used);
      metrics.tokensUsed(used.model, used.input_tokens, used.output_tokens);
      total.calls += used.calls;
      total.input_tokens += used.input_tokens;
      total.output_tokens += used.output_tokens;
      const cost = costOf(used);
      if (cost !== undefined) total.cost = (total.cost ?? 0) + cost;
    }
    if (!isLast) storeWaiting();
  };

  return {
    options: { keepsSpans: traces !== "off", onRecords } satisfies RecordsOptions,

    /** Of the whole attempt. */
    total: total as Readonly<UsageTotal>,

    get slowestNode(): SlowestNode | undefined {
      return slowestNode;
    },

    /** The records for the statement that ends the run. Later records are dropped. */
    last(status: "success" | "error" | "timeout" | "interrupted"): AttemptRecords | undefined {
      end();
      last = take(traces === "all" || (traces === "errors" && (status === "error" || status === "timeout")));
      return last;
    },

    /** Resolves when no part is being stored: the usage needs the run's row. Never rejects. */
    stored: async (): Promise<void> => await storing,

    /** The statement has stored what `last` returned. */
    lastIsStored(): void {
      last = undefined;
    },

    /** Stores what waits when the attempt does not end the run. Never rejects. */
    async leave(): Promise<void> {
      end();
      await storing;
      const waiting = [last, take(traces === "all")];
      last = undefined;
      for (const records of waiting) if (records !== undefined) await storePart(records);
    },
  };
};

export type RunRecords = ReturnType<typeof createAttemptRecords>;

/** Exports the spans of runs by OpenTelemetry. */
export interface TelemetryOptions {
  /** Whether arguments, results and messages are exported. */
  contents: boolean;
}

export interface ExportedAttempt {
  /** For the spans of the graph. */
  readonly spans: SpanExport;
  /** For log lines. */
  readonly traceId: string;
  /** Otherwise the attempt runs in the context of the request that woke the worker. */
  run<Result>(work: () => Result): Result;
  /** Undefined: the run continues elsewhere. */
  end(ending: { status: string; error: JsonObject | null; usage?: Readonly<UsageTotal> } | undefined): void;
}

/** Stored with the run: its attempts are children of the request, also at other servers. */
const storedIn = ({ kwargs }: ClaimedRunRow): TraceContext | undefined =>
  kwargs["trace_context"] as TraceContext | undefined;

/** `queued`: in seconds; undefined for later attempts. */
export const exportAttempt = (
  run: ClaimedRunRow,
  queued: number | undefined,
  { contents }: TelemetryOptions,
): ExportedAttempt => {
  const parent = contextOf(storedIn(run));
  const attributes = {
    [ATTRIBUTES.operation]: OPERATIONS.attempt,
    [ATTRIBUTES.agent]: run.graph_id,
    [ATTRIBUTES.agentId]: run.assistant_id,
    [ATTRIBUTES.conversation]: run.thread_id,
    [ATTRIBUTES.run]: run.run_id,
    [ATTRIBUTES.attempt]: run.attempt,
    [ATTRIBUTES.queueSeconds]: queued,
  };
  const kind = SpanKind.CONSUMER;
  const span = tracer().startSpan(SPANS.attempt(run.graph_id), { kind, attributes }, parent);
  const inside = trace.setSpan(parent, span);
  return {
    spans: { parent: traceContextOf(inside), contents },
    traceId: span.spanContext().traceId,
    run: (work) => context.with(inside, work),
    end(ending) {
      const { status, error, usage } = ending ?? {};
      const failed = status === "error" || status === "timeout";
      span.setAttributes({
        [ATTRIBUTES.status]: status ?? "continues elsewhere",
        [ATTRIBUTES.inputTokens]: usage?.input_tokens,
        [ATTRIBUTES.outputTokens]: usage?.output_tokens,
        [ATTRIBUTES.errorType]: failed ? String(error?.error ?? status).slice(0, 100) : undefined,
      });
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
};
