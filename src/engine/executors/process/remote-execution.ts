import type { TraceRecords } from "../../../graphs/trace/recorder.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type {
  AttemptResult,
  ExecutionOptions,
  GraphExecution,
  StopReason,
  WatchedSink,
} from "../executor.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import { LeaseLostError } from "../../../platform/domain/errors.ts";
import type { GraphProcess } from "./graph-process.ts";
import {
  charactersOf,
  describeError,
  restoreError,
  WINDOW_CHARACTERS,
  type EventPair,
  type MadeText,
  type SentResult,
} from "./messages.ts";

/** Acknowledgements per window; fewer save messages. */
const STEPS_OF_WINDOW = 8;

/**
 * Time between `stop` and the kill. The execution is given up after 0.5 s, so only a blocked event loop takes
 * longer.
 */
const STOP_MS = 5_000;
/** A supervisor kills the server after some seconds. */
const SHUTDOWN_STOP_MS = 1_500;

const textOf = <Text>(made: MadeText<Text>): Text => {
  if ("error" in made) throw restoreError(made.error);
  return made.text;
};

const toResult = (sent: SentResult): AttemptResult => {
  if (sent.kind === "failed") return { kind: "failed", error: restoreError(sent.error) };
  if (sent.kind !== "completed") return sent;
  const { values, interrupts, outputKeys, lastUnsafe } = sent;
  return {
    kind: "completed",
    values: () => textOf(values),
    interrupts: interrupts && (() => textOf(interrupts)),
    outputKeys,
    lastUnsafe,
  };
};

/** An execution as the main process sees it: waiting, placed or ended. */
export class RemoteExecution implements GraphExecution {
  readonly result: Promise<AttemptResult>;
  stopReason: StopReason | undefined;
  #place: Pick<GraphProcess, "send" | "kill"> | undefined;
  #wantsValues: boolean;
  #isGraphEnded = false;
  #isOver = false;
  #killing: NodeJS.Timeout | undefined;
  #untaken = 0;
  #settle: (result: AttemptResult) => void = () => undefined;

  constructor(
    readonly id: number,
    readonly run: ClaimedRunRow,
    private readonly sink: WatchedSink,
    private readonly options: ExecutionOptions,
    private readonly onWithdrawn: (execution: RemoteExecution) => void,
  ) {
    // A threadless run leaves no thread to read values from.
    this.#wantsValues = run.delete_thread;
    this.result = new Promise((resolve) => (this.#settle = resolve));
  }

  get isAlone(): boolean {
    return this.options.isAlone;
  }

  get isPlaced(): boolean {
    return this.#place !== undefined;
  }

  /**
   * A run whose graph has ended does no harm, and a kill would lose its progress and the attempts of other
   * runs.
   */
  get #maySettle(): boolean {
    return this.#isGraphEnded && this.stopReason?.kind !== "shutdown";
  }

  placeAt(place: Pick<GraphProcess, "send" | "kill">): void {
    const { id, run, sink } = this;
    const { publishesProtocol, records } = this.options;
    this.#place = place;
    place.send({
      kind: "execute",
      id,
      run,
      wanted: sink.wanted,
      logged: sink.hasLog,
      wantsValues: this.#wantsValues,
      publishesProtocol,
      keepsSpans: records.keepsSpans,
      exported: records.exported,
    });
    sink.onWanted(() => place.send({ kind: "wanted", id, logged: sink.hasLog }));
  }

  stop(reason: StopReason): void {
    if (this.stopReason !== undefined || this.#isOver) return;
    this.stopReason = reason;
    const place = this.#place;
    if (place === undefined) {
      this.onWithdrawn(this);
      return this.lost("was not started");
    }
    place.send({ kind: "stop", id: this.id, reason });
    if (this.#maySettle) return;
    const ms = reason.kind === "shutdown" ? SHUTDOWN_STOP_MS : STOP_MS;
    const how = `was killed: the graph of a run went on for ${ms} ms after it was stopped`;
    this.#killing = setTimeout(() => place.kill("unstopped", how), ms).unref();
  }

  wantValues(): void {
    if (this.#wantsValues) return;
    this.#wantsValues = true;
    this.#place?.send({ kind: "values", id: this.id });
  }

  emit(events: readonly EventPair[]): void {
    for (const pair of events) {
      this.sink.emit(pair[0], () => pair[1], pair[2]);
      this.#untaken += charactersOf(pair);
    }
    if (this.#untaken < WINDOW_CHARACTERS / STEPS_OF_WINDOW) return;
    const characters = this.#untaken;
    this.#untaken = 0;
    const acknowledge = (): void => this.#place?.send({ kind: "taken", id: this.id, characters });
    if (this.sink.needsPause) void this.sink.pause().then(acknowledge);
    else acknowledge();
  }

  log(): void {
    const { id } = this;
    const answer = (): void => this.#place?.send({ kind: "logged", id });
    const refuse = (error: unknown): void => {
      // Read before the answer, so the graph's process knows why nothing more is stored.
      if (error instanceof LeaseLostError) this.stop({ kind: "lease-lost" });
      this.#place?.send({ kind: "logged", id, failure: describeError(error, isPassing) });
    };
    const logged = this.sink.logged();
    if (logged === undefined) answer();
    else void logged.then(answer, refuse);
  }

  recorded(records: TraceRecords): void {
    this.options.records.onRecords(records, false);
  }

  graphEnded(): void {
    if (!this.#isGraphEnded) this.options.onGraphEnded();
    this.#isGraphEnded = true;
    if (this.#maySettle) clearTimeout(this.#killing);
  }

  arrived(result: SentResult, records?: TraceRecords): void {
    if (records !== undefined) this.options.records.onRecords(records, true);
    this.end(toResult(result));
  }

  /** Fails at once, instead of waiting until a file is corrected. */
  refused(why: string): void {
    this.end({ kind: "failed", error: Object.assign(new Error(why), { name: "GraphLoadError" }) });
  }

  lost(how: string): void {
    const reason = this.stopReason;
    this.end(reason === undefined ? { kind: "lost", how } : { kind: "stopped", reason });
  }

  /** No attempt counts as lost. */
  handedBack(): void {
    this.end({ kind: "stopped", reason: this.stopReason ?? { kind: "shutdown" } });
  }

  private end(result: AttemptResult): void {
    this.#isOver = true;
    clearTimeout(this.#killing);
    this.graphEnded();
    this.#settle(result);
  }
}
