import { createUsageSums, type SummedUsage } from "./usage-sums.ts";
import type { ExportedParent, ExportedSpan } from "./exported-spans.ts";
import type { OpenSpan, SpanFields, SpanKind, SpanStatus, TraceScope } from "./scope.ts";

/** The records of an attempt since the last `take`. `spans`: JSON objects separated by commas, or empty. */
export interface TraceRecords {
  spans: string;
  usage: readonly SummedUsage[];
  calls: readonly EndedCall[];
  /** Since the attempt began; undefined if no node has ended. */
  slowestNode: SlowestNode | undefined;
}

/** Of the graph itself, not of its subgraphs. */
export interface SlowestNode {
  name: string;
  ms: number;
}

/** For metrics. */
export interface EndedCall {
  kind: "model" | "tool";
  name: string;
  seconds: number;
  failed: boolean;
}

/** Of all records of an attempt. Further spans are only counted. */
export const TRACE_BYTES_AT_MOST = 256 * 1024;
const NAME_LENGTH_AT_MOST = 200;
/** Between two times of handing over; further ones are not counted. */
const CALLS_AT_MOST = 10_000;
const MS_PER_SECOND = 1_000;
/** Names of fields, numbers and punctuation of a record. */
const RECORD_BYTES = 160;

interface Span {
  readonly id: number;
  /** Its beginning was taken before its end. */
  isTaken: boolean;
  start: SpanFields;
  end: SpanFields | undefined;
}

/** As JSON: a control character has six bytes. */
const bytesOf = (fields: SpanFields | undefined): number => {
  let bytes = 0;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === "string" || typeof value === "object")
      bytes += Buffer.byteLength(JSON.stringify(value));
  }
  return bytes;
};

/** Names of tools come from graphs, so they may be anything. */
const nameIn = (given: unknown): string =>
  typeof given === "string" ? given.slice(0, NAME_LENGTH_AT_MOST).toWellFormed() : "(no name)";

/** The model that answered may have another name than the one that was asked. */
const modelIn = (fields: SpanFields | undefined): string | undefined =>
  typeof fields?.["model"] === "string" ? fields["model"] : undefined;

/** Of spans that are not exported. */
const NOT_EXPORTED = {
  run: <Result>(work: () => Result): Result => work(),
  said: (): void => undefined,
};

const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000;

/**
 * Records the spans and the usage of one attempt in memory.
 * @param keepsSpans false: only usage
 * @param exported the attempt's span of OpenTelemetry
 */
export const createRecorder = (keepsSpans: boolean, exported?: ExportedParent) => {
  const startedAt = performance.now();
  const now = (): number => rounded(performance.now() - startedAt);
  let lastId = 0;
  let bytes = 0;
  let dropped = 0;
  let droppedTaken = 0;
  let pending: Span[] = [];
  const usage = createUsageSums();
  let calls: EndedCall[] = [];
  let slowestNode: SlowestNode | undefined;
  let onUsage: (() => void) | undefined;

  const scopeAt = (parent: number | undefined, above: ExportedParent | undefined): TraceScope => ({
    tracesNodes: keepsSpans || above !== undefined,
    begin: (kind, name, fields) => begin(parent, above, kind, name, fields),
    used(used) {
      usage.add({ ...used, calls: 1 });
      onUsage?.();
    },
    now,
  });

  const noteCall = (kind: SpanKind, name: string, seconds: number, failed: boolean): void => {
    if (kind === "node" || calls.length === CALLS_AT_MOST) return;
    calls.push({ kind, name, seconds, failed });
  };

  /** A span that is only counted. */
  const countedOnly = (
    parent: number | undefined,
    out: ExportedSpan | undefined,
    kind: SpanKind,
    name: string,
  ): OpenSpan => {
    const begunAt = performance.now();
    const { run, said } = out ?? NOT_EXPORTED;
    return {
      scope: scopeAt(parent, out?.children),
      run,
      said,
      end(status, further) {
        out?.end(status, further);
        noteCall(
          kind,
          modelIn(further) ?? name,
          (performance.now() - begunAt) / MS_PER_SECOND,
          status === "error",
        );
      },
    };
  };

  const begin = (
    parent: number | undefined,
    above: ExportedParent | undefined,
    kind: SpanKind,
    given: unknown,
    fields?: SpanFields,
  ): OpenSpan => {
    const name = nameIn(given);
    const out = above?.begin(kind, name, fields, now());
    if (!keepsSpans) return countedOnly(parent, out, kind, name);
    bytes += RECORD_BYTES + bytesOf({ name, ...fields });
    if (bytes > TRACE_BYTES_AT_MOST) {
      dropped += 1;
      return countedOnly(parent, out, kind, name);
    }
    const id = (lastId += 1);
    const startMs = now();
    const start = {
      id,
      ...(parent === undefined ? {} : { parent }),
      kind,
      name,
    };
    const span: Span = {
      id,
      isTaken: false,
      start: { ...start, start_ms: startMs, ...fields },
      end: undefined,
    };
    pending.push(span);
    const end = (status: SpanStatus, further?: SpanFields): void => {
      if (span.end !== undefined) return;
      out?.end(status, further);
      const ms = now() - startMs;
      if (kind === "node" && parent === undefined && ms > (slowestNode?.ms ?? -1)) slowestNode = { name, ms };
      noteCall(kind, modelIn(further) ?? name, ms / MS_PER_SECOND, status === "error");
      bytes += bytesOf(further);
      const kept = bytes > TRACE_BYTES_AT_MOST ? undefined : further;
      span.end = { end_ms: now(), status, ...kept };
      if (span.isTaken) pending.push(span);
    };
    const { run, said } = out ?? NOT_EXPORTED;
    return { scope: scopeAt(id, out?.children), run, said, end };
  };

  return {
    root: scopeAt(undefined, exported),

    /** Called after each call of a model that reported its usage. */
    onUsage(listener: () => void): void {
      onUsage = listener;
    },

    /** Undefined if nothing was recorded since the last time. */
    take(): TraceRecords | undefined {
      const records = pending.map((span) => {
        const record = span.isTaken
          ? { id: span.id, ...span.end }
          : span.end === undefined
            ? span.start
            : { ...span.start, ...span.end };
        span.isTaken = true;
        return JSON.stringify(record);
      });
      if (dropped > droppedTaken) records.push(JSON.stringify({ dropped: dropped - droppedTaken }));
      const used = usage.take();
      if (records.length + used.length + calls.length === 0) return undefined;
      const taken = { spans: records.join(","), usage: used, calls, slowestNode };
      pending = [];
      calls = [];
      droppedTaken = dropped;
      return taken;
    },
  };
};

export type Recorder = ReturnType<typeof createRecorder>;
