import type { ExportedParent, ExportedSpan } from "./exported-spans.ts";
import type { ModelUsage, OpenSpan, SpanFields, SpanKind, SpanStatus, TraceScope } from "./scope.ts";

/** Tokens of all calls of one model. */
export interface SummedUsage extends ModelUsage {
  calls: number;
}

/** Names come from answers, so a run may have as many as it has calls. */
const MODELS_AT_MOST = 100;
const OTHER_MODELS = "other models";

/** Sums usage by model, because a run may call models more often than its records are handed over. */
export class UsageSums {
  #known: Set<string> | undefined;
  #sums: Map<string, SummedUsage> | undefined;

  #nameOf(model: string): string {
    const known = (this.#known ??= new Set());
    if (known.size < MODELS_AT_MOST) known.add(model);
    return known.has(model) ? model : OTHER_MODELS;
  }

  add(used: SummedUsage): void {
    const model = this.#nameOf(used.model);
    const sums = (this.#sums ??= new Map());
    const sum = sums.get(model);
    if (sum === undefined) {
      sums.set(model, { ...used, model });
      return;
    }
    sum.calls += used.calls;
    sum.input_tokens += used.input_tokens;
    sum.output_tokens += used.output_tokens;
    sum.cache_read_tokens += used.cache_read_tokens;
    sum.cache_creation_tokens += used.cache_creation_tokens;
    sum.reasoning_tokens += used.reasoning_tokens;
  }

  /** The sums since the last call. */
  take(): SummedUsage[] {
    const taken = this.#sums === undefined ? [] : [...this.#sums.values()];
    this.#sums = undefined;
    return taken;
  }
}

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

/** A control character has six bytes. */
const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const bytesOf = (fields: SpanFields | undefined): number => {
  let bytes = 0;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === "string" || typeof value === "object") bytes += jsonBytes(value);
  }
  return bytes;
};

/** Names of tools come from graphs, so they may be anything. */
const nameIn = (given: unknown): string =>
  typeof given === "string" ? given.slice(0, NAME_LENGTH_AT_MOST).toWellFormed() : "(no name)";

/** The model that answered may have another name than the one that was asked. */
const modelIn = (fields: SpanFields | undefined): string | undefined =>
  typeof fields?.["model"] === "string" ? fields["model"] : undefined;

const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000;

/** Code of the graph that runs inside the attempt, or inside a span. Objects instead of closures: each node has one. */
class Scope implements TraceScope {
  constructor(
    protected readonly recorder: Recorder,
    /** Of the span that contains spans begun here; undefined: none. */
    readonly parentId: number | undefined,
    protected readonly exported: ExportedParent | undefined,
  ) {}

  get tracesNodes(): boolean {
    return this.recorder.keepsSpans || this.exported !== undefined;
  }
  begin(kind: SpanKind, name: string, fields?: SpanFields): OpenSpan {
    return this.recorder.begin(kind, name, fields, this.parentId, this.exported);
  }
  used(usage: ModelUsage): void {
    this.recorder.used(usage);
  }
  now(): number {
    return this.recorder.now();
  }
}

interface Beginning {
  kind: SpanKind;
  name: string;
  fields: SpanFields | undefined;
  startMs: number;
  /** Of the span above. */
  parent: number | undefined;
}

/** Open or ended; also the scope of its code. */
class Span extends Scope implements OpenSpan {
  #endMs: number | undefined;
  #status: SpanStatus | undefined;
  #endFields: SpanFields | undefined;
  #isTaken = false;

  /** `id`: undefined for a span that is only counted. */
  constructor(
    recorder: Recorder,
    readonly id: number | undefined,
    readonly beginning: Beginning,
    private readonly out: ExportedSpan | undefined,
  ) {
    super(recorder, id ?? beginning.parent, out?.children);
  }

  get scope(): this {
    return this;
  }
  run<Result>(work: () => Result): Result {
    return this.out === undefined ? work() : this.out.run(work);
  }
  said(direction: "input" | "output", value: () => unknown): void {
    this.out?.said(direction, value);
  }

  end(status: SpanStatus, fields?: SpanFields): void {
    if (this.#endMs !== undefined) return;
    this.#endMs = this.recorder.now();
    this.#status = status;
    this.out?.end(status, fields);
    this.#endFields = this.recorder.ended(this, this.#endMs, status, fields);
    if (this.#isTaken) this.recorder.keep(this);
  }

  /** JSON of what was not taken yet. */
  take(): string {
    const { kind, name, fields, startMs, parent } = this.beginning;
    const end = { end_ms: this.#endMs, status: this.#status, ...this.#endFields };
    const taken = this.#isTaken
      ? { id: this.id, ...end }
      : { id: this.id, parent, kind, name, start_ms: startMs, ...fields, ...end };
    this.#isTaken = true;
    return JSON.stringify(taken);
  }
}

/** Records the spans and the usage of one attempt in memory. */
export class Recorder {
  readonly #startedAt = performance.now();
  #lastId = 0;
  #bytes = 0;
  #dropped = 0;
  #droppedTaken = 0;
  #pending: Span[] = [];
  #calls: EndedCall[] = [];
  #slowestNode: SlowestNode | undefined;
  #onUsage: (() => void) | undefined;
  readonly #usage = new UsageSums();
  readonly root: TraceScope;

  /**
   * @param keepsSpans false: only usage
   * @param exported the attempt's span of OpenTelemetry
   */
  constructor(
    readonly keepsSpans: boolean,
    exported?: ExportedParent,
  ) {
    this.root = new Scope(this, undefined, exported);
  }

  /** Milliseconds since the attempt began. */
  now(): number {
    return rounded(performance.now() - this.#startedAt);
  }

  used(usage: ModelUsage): void {
    this.#usage.add({ ...usage, calls: 1 });
    this.#onUsage?.();
  }

  begin(
    kind: SpanKind,
    given: unknown,
    fields: SpanFields | undefined,
    parent: number | undefined,
    exported: ExportedParent | undefined,
  ): OpenSpan {
    const beginning = { kind, name: nameIn(given), fields, startMs: this.now(), parent };
    const out = exported?.begin(kind, beginning.name, fields, beginning.startMs);
    if (!this.keepsSpans) return new Span(this, undefined, beginning, out);
    this.#bytes += RECORD_BYTES + jsonBytes(beginning.name) + bytesOf(fields);
    if (this.#bytes > TRACE_BYTES_AT_MOST) {
      this.#dropped += 1;
      return new Span(this, undefined, beginning, out);
    }
    const span = new Span(this, (this.#lastId += 1), beginning, out);
    this.#pending.push(span);
    return span;
  }

  /** Counts the end; returns the fields that there is room for. */
  ended(
    { id, beginning: { kind, name, startMs, parent } }: Span,
    endMs: number,
    status: SpanStatus,
    fields: SpanFields | undefined,
  ): SpanFields | undefined {
    const ms = endMs - startMs;
    if (kind !== "node")
      this.#noteCall(kind, modelIn(fields) ?? name, ms / MS_PER_SECOND, status === "error");
    else if (parent === undefined && ms > (this.#slowestNode?.ms ?? -1)) this.#slowestNode = { name, ms };
    if (id === undefined) return undefined;
    this.#bytes += bytesOf(fields);
    return this.#bytes > TRACE_BYTES_AT_MOST ? undefined : fields;
  }

  keep(span: Span): void {
    if (span.id !== undefined) this.#pending.push(span);
  }

  #noteCall(kind: EndedCall["kind"], name: string, seconds: number, failed: boolean): void {
    if (this.#calls.length < CALLS_AT_MOST) this.#calls.push({ kind, name, seconds, failed });
  }

  /** Called after each call of a model that reported its usage. */
  onUsage(listener: () => void): void {
    this.#onUsage = listener;
  }

  /** Undefined if nothing was recorded since the last time. */
  take(): TraceRecords | undefined {
    const records = this.#pending.map((span) => span.take());
    const dropped = this.#dropped - this.#droppedTaken;
    if (dropped > 0) records.push(JSON.stringify({ dropped }));
    const usage = this.#usage.take();
    if (records.length + usage.length + this.#calls.length === 0) return undefined;
    const taken = { spans: records.join(","), usage, calls: this.#calls, slowestNode: this.#slowestNode };
    this.#pending = [];
    this.#calls = [];
    this.#droppedTaken = this.#dropped;
    return taken;
  }
}
