import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type {
  AttemptResult,
  ExecutionOptions,
  GraphExecution,
  StopReason,
  WatchedSink,
} from "../executor.ts";
import { restoreError } from "./described-error.ts";
import {
  charactersOf,
  WINDOW_CHARACTERS,
  type EventPair,
  type MadeText,
  type SentResult,
  type ToGraphProcess,
} from "./messages.ts";

/** What was taken over is told in so many steps of the window: a message for each batch would cost both sides. */
const STEPS_OF_WINDOW = 8;

/** Where an execution has been placed. */
export interface Placed {
  send(message: ToGraphProcess): void;
}

const textOf = <Text>(made: MadeText<Text>): Text => {
  if ("error" in made) throw restoreError(made.error);
  return made.text;
};

const toResult = (sent: SentResult): AttemptResult => {
  if (sent.kind === "failed") return { kind: "failed", error: restoreError(sent.error) };
  if (sent.kind === "stopped" || sent.kind === "refused") return sent;
  const { values, interrupts, lastUnsafe } = sent;
  return {
    kind: "completed",
    values: () => textOf(values),
    interrupts: interrupts === undefined ? undefined : () => textOf(interrupts),
    lastUnsafe,
  };
};

/** The main process's side of an execution in a graph process: waits for its place, is there, has ended. */
export class RemoteExecution implements GraphExecution {
  readonly result: Promise<AttemptResult>;
  stopReason: StopReason | undefined;
  #place: Placed | undefined;
  #wantsValues: boolean;
  #isGraphEnded = false;
  /** Whether its process has to say first that it has begun. */
  #isAwaited = false;
  #untaken = 0;
  #settle: (result: AttemptResult) => void = () => undefined;

  constructor(
    readonly id: number,
    readonly run: ClaimedRunRow,
    private readonly sink: WatchedSink,
    private readonly options: ExecutionOptions,
    /** Called for the first reason. */
    private readonly onStop: (execution: RemoteExecution) => void,
  ) {
    // A threadless run leaves nothing behind that they could be read from.
    this.#wantsValues = run.delete_thread;
    this.result = new Promise((resolve) => (this.#settle = resolve));
  }

  get isSuspect(): boolean {
    return this.options.isSuspect;
  }

  get isPlaced(): boolean {
    return this.#place !== undefined;
  }

  /** The graph takes no more time; what is outstanding is still to be stored there. */
  get isGraphEnded(): boolean {
    return this.#isGraphEnded;
  }

  /** Its process has not read yet that it is to begin. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  begun(): void {
    this.#isAwaited = false;
  }

  /** @param acknowledged the process says when it has begun; a message that a run pays only where others may block the process */
  placeAt(place: Placed, acknowledged = false): void {
    const { id, run, sink } = this;
    const { publishesProtocol } = this.options;
    this.#place = place;
    this.#isAwaited = acknowledged;
    const wantsValues = this.#wantsValues;
    const { wanted, hasLog: logged } = sink;
    place.send({ kind: "execute", id, run, wanted, logged, wantsValues, publishesProtocol, acknowledged });
    sink.onWanted(() => place.send({ kind: "wanted", id, logged: sink.hasLog }));
    if (this.stopReason !== undefined) place.send({ kind: "stop", id, reason: this.stopReason });
  }

  stop(reason: StopReason): void {
    if (this.stopReason !== undefined) return;
    this.stopReason = reason;
    this.#place?.send({ kind: "stop", id: this.id, reason });
    this.onStop(this);
  }

  wantValues(): void {
    if (this.#wantsValues) return;
    this.#wantsValues = true;
    this.#place?.send({ kind: "values", id: this.id });
  }

  /** Events have arrived; they are taken over when the sink's log and sockets had their turn. */
  emit(events: readonly EventPair[]): void {
    for (const pair of events) {
      this.sink.emit(pair[0], () => pair[1], pair[2]);
      this.#untaken += charactersOf(pair);
    }
    if (this.#untaken < WINDOW_CHARACTERS / STEPS_OF_WINDOW) return;
    const characters = this.#untaken;
    this.#untaken = 0;
    const tell = (): void => this.#place?.send({ kind: "taken", id: this.id, characters });
    if (this.sink.needsPause) void this.sink.pause().then(tell);
    else tell();
  }

  /** Its process stores checkpoints as soon as the log has the events that it sent before. */
  log(): void {
    const answer = (): void => this.#place?.send({ kind: "logged", id: this.id });
    const logged = this.sink.logged();
    if (logged === undefined) answer();
    else void logged.then(answer);
  }

  graphEnded(): void {
    if (!this.#isGraphEnded) this.options.onGraphEnded();
    this.#isGraphEnded = true;
  }

  arrived(result: SentResult): void {
    this.end(toResult(result));
  }

  /** The graphs can't be loaded: who waits for it is told, instead of waiting until somebody mends a file. */
  refused(why: string): void {
    this.end({ kind: "failed", error: Object.assign(new Error(why), { name: "GraphLoadError" }) });
  }

  /** Its process has ended, or it never had one. */
  lost(how: string): void {
    const reason = this.stopReason;
    this.end(reason === undefined ? { kind: "lost", how } : { kind: "stopped", reason });
  }

  /** Another execution has ended its process or blocks it: the server that claims the run next goes on, and no attempt counts as lost. */
  handedBack(): void {
    this.end({ kind: "stopped", reason: this.stopReason ?? { kind: "shutdown" } });
  }

  private end(result: AttemptResult): void {
    this.graphEnded();
    this.#settle(result);
  }
}
