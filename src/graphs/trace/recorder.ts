import type { ModelUsage, OpenSpan, SpanFields, SpanKind, SpanStatus, TraceScope } from "./scope.ts";

/** What an attempt recorded since the last time. `spans`: JSON objects separated by commas, or empty. */
export interface TraceRecords {
  spans: string;
  usage: readonly ModelUsage[];
  calls: readonly EndedCall[];
}

/** For metrics. */
export interface EndedCall {
  kind: "model" | "tool";
  name: string;
  seconds: number;
  failed: boolean;
}

/** Characters of all records of an attempt. Further spans are only counted. */
export const TRACE_CHARACTERS_AT_MOST = 256 * 1024;
const NAME_LENGTH_AT_MOST = 200;
/** Between two times of handing over; further ones are not counted. */
const CALLS_AT_MOST = 10_000;
const MS_PER_SECOND = 1_000;
/** Names of fields, numbers and punctuation of a record. */
const RECORD_CHARACTERS = 160;

interface Span {
  readonly id: number;
  /** Its beginning was taken before its end. */
  isTaken: boolean;
  start: SpanFields;
  end: SpanFields | undefined;
}

const charactersOf = (fields: SpanFields | undefined): number => {
  let characters = 0;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === "string") characters += value.length;
    else if (typeof value === "object") characters += JSON.stringify(value).length;
  }
  return characters;
};

/** The model that answered may have another name than the one that was asked. */
const modelIn = (fields: SpanFields | undefined): string | undefined =>
  typeof fields?.["model"] === "string" ? fields["model"] : undefined;

const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000;

/**
 * Records the spans and the usage of one attempt in memory.
 * @param keepsSpans false: only usage
 */
export const createRecorder = (keepsSpans: boolean) => {
  const startedAt = performance.now();
  const now = (): number => rounded(performance.now() - startedAt);
  let lastId = 0;
  let characters = 0;
  let dropped = 0;
  let droppedTaken = 0;
  let pending: Span[] = [];
  let usage: ModelUsage[] = [];
  let calls: EndedCall[] = [];
  let onUsage: (() => void) | undefined;

  const scopeAt = (parent: number | undefined): TraceScope => ({
    begin: (kind, name, fields) => begin(parent, kind, name, fields),
    used(used) {
      usage.push(used);
      onUsage?.();
    },
    now,
  });

  const noteCall = (kind: SpanKind, name: string, seconds: number, failed: boolean): void => {
    if (kind === "node" || calls.length === CALLS_AT_MOST) return;
    calls.push({ kind, name: name.slice(0, NAME_LENGTH_AT_MOST), seconds, failed });
  };

  /** A span that is only counted. */
  const countedOnly = (parent: number | undefined, kind: SpanKind, name: string): OpenSpan => {
    const begunAt = performance.now();
    return {
      scope: scopeAt(parent),
      end: (status, further) =>
        noteCall(
          kind,
          modelIn(further) ?? name,
          (performance.now() - begunAt) / MS_PER_SECOND,
          status === "error",
        ),
    };
  };

  const begin = (parent: number | undefined, kind: SpanKind, name: string, fields?: SpanFields): OpenSpan => {
    if (!keepsSpans) return countedOnly(parent, kind, name);
    characters += RECORD_CHARACTERS + Math.min(name.length, NAME_LENGTH_AT_MOST) + charactersOf(fields);
    if (characters > TRACE_CHARACTERS_AT_MOST) {
      dropped += 1;
      return countedOnly(parent, kind, name);
    }
    const id = (lastId += 1);
    const startMs = now();
    const start = {
      id,
      ...(parent === undefined ? {} : { parent }),
      kind,
      name: name.slice(0, NAME_LENGTH_AT_MOST),
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
      noteCall(kind, modelIn(further) ?? name, (now() - startMs) / MS_PER_SECOND, status === "error");
      characters += charactersOf(further);
      const kept = characters > TRACE_CHARACTERS_AT_MOST ? undefined : further;
      span.end = { end_ms: now(), status, ...kept };
      if (span.isTaken) pending.push(span);
    };
    return { scope: scopeAt(id), end };
  };

  return {
    root: scopeAt(undefined),

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
      if (records.length + usage.length + calls.length === 0) return undefined;
      const taken = { spans: records.join(","), usage, calls };
      pending = [];
      usage = [];
      calls = [];
      droppedTaken = dropped;
      return taken;
    },
  };
};

export type Recorder = ReturnType<typeof createRecorder>;
