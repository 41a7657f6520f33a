import { exportedBelow, type SpanExport } from "../../graphs/trace/exported-spans.ts";
import { Recorder, type TraceRecords } from "../../graphs/trace/recorder.ts";
import type { TraceScope } from "../../graphs/trace/scope.ts";

/** Receives the records of an attempt. */
export interface RecordsOptions {
  /** False: only the usage of models is recorded. */
  keepsSpans: boolean;
  /** Undefined: spans are not exported. */
  exported?: SpanExport | undefined;
  /** `isLast`: the attempt's result follows. */
  onRecords(records: TraceRecords, isLast: boolean): void;
}

/** A trace can be read this long after something happened. */
const SPANS_MS = 2_000;
/** A killed server loses the usage of this time. */
const USAGE_MS = 100;

export interface Recording {
  readonly scope: TraceScope;
  /** As `run` of a span, for the attempt. */
  run<Result>(work: () => Result): Result;
  /** Call before the attempt has its result. */
  end(): void;
}

/** Hands over the records of an attempt while it goes on. */
export const startRecording = ({ keepsSpans, exported, onRecords }: RecordsOptions): Recording => {
  const parent = exported && exportedBelow(exported);
  const recorder = new Recorder(keepsSpans, parent);
  let usageTimer: NodeJS.Timeout | undefined;
  let isOver = false;
  const hand = (isLast: boolean): void => {
    clearTimeout(usageTimer);
    usageTimer = undefined;
    const records = recorder.take();
    if (records !== undefined) onRecords(records, isLast);
  };
  const spansTimer = keepsSpans ? setInterval(() => hand(false), SPANS_MS) : undefined;
  recorder.onUsage(() => {
    if (!isOver) usageTimer ??= setTimeout(() => hand(false), USAGE_MS);
  });
  return {
    scope: recorder.root,
    run: (work) => (parent === undefined ? work() : parent.run(work)),
    end() {
      if (isOver) return;
      isOver = true;
      clearInterval(spansTimer);
      hand(true);
    },
  };
};
