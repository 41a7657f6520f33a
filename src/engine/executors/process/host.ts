import type { TraceRecords } from "../../../graphs/trace/recorder.ts";
import type { GraphExecution, GraphExecutor, GraphResult, WatchedSink } from "../executor.ts";
import {
  charactersOf,
  describeError,
  restoreError,
  WINDOW_CHARACTERS,
  type DescribedError,
  type EventPair,
  type FromGraphProcess,
  type MadeText,
  type SentResult,
  type ToGraphProcess,
} from "./messages.ts";

const BATCH_CHARACTERS = 256 * 1024;

interface HostOptions {
  executor: Pick<GraphExecutor<GraphResult>, "execute">;
  send(message: FromGraphProcess): void;
  isLoss(error: unknown): boolean;
  residentBytes(): number;
  /** See `pong` in messages.ts. */
  takeCheckpointWrites?: () => readonly number[];
  onClose(): void;
}

/**
 * One message per turn of the event loop: a message per event cost 9 microseconds in each process.
 * WINDOW_CHARACTERS bounds the memory of both processes.
 */
class EventPipe {
  #batches = new Map<number, EventPair[]>();
  #characters = 0;
  #isDue = false;

  constructor(private readonly send: (message: FromGraphProcess) => void) {}

  push(id: number, pair: EventPair): void {
    const batch = this.#batches.get(id);
    if (batch === undefined) this.#batches.set(id, [pair]);
    else batch.push(pair);
    this.#characters += charactersOf(pair);
    if (this.#characters > BATCH_CHARACTERS) return this.flush();
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#batches.size === 0) return;
    const batches = [...this.#batches];
    this.#batches = new Map();
    this.#characters = 0;
    this.send({ kind: "events", batches });
  }

  /** The log has, or refuses, what was sent before. */
  askForLog(id: number): void {
    this.flush();
    this.send({ kind: "log", id });
  }
}

/** A run in this process, as the main process steers it. Its events go through the pipe. */
class HostedRun implements WatchedSink {
  execution: GraphExecution<GraphResult> | undefined;
  lastRecords: TraceRecords | undefined;
  readonly #awaitingLog: Array<(failure?: DescribedError) => void> = [];
  #onItsWay = 0;
  #goOn: (() => void) | undefined;

  constructor(
    private readonly id: number,
    private readonly pipe: EventPipe,
    public wanted: boolean,
    public hasLog: boolean,
    /** May change until the graph has ended. */
    public wantsValues: boolean,
  ) {}

  onWanted(): void {
    // Only the main process listens.
  }

  async logged(): Promise<void> {
    this.pipe.askForLog(this.id);
    const failure = await new Promise<DescribedError | undefined>((resolve) =>
      this.#awaitingLog.push(resolve),
    );
    if (failure !== undefined) throw restoreError(failure);
  }

  /** Settles the oldest pending `logged`. */
  hasLogged(failure?: DescribedError): void {
    this.#awaitingLog.shift()?.(failure);
  }

  emit(event: string, data: () => string, checkpoint?: string): void {
    if (!this.wanted) return;
    const pair: EventPair = checkpoint === undefined ? [event, data()] : [event, data(), checkpoint];
    this.#onItsWay += charactersOf(pair);
    this.pipe.push(this.id, pair);
  }

  get needsPause(): boolean {
    return this.#onItsWay > WINDOW_CHARACTERS;
  }

  async pause(): Promise<void> {
    if (this.#onItsWay <= WINDOW_CHARACTERS / 2) return;
    await new Promise<void>((resolve) => (this.#goOn = resolve));
  }

  taken(characters: number): void {
    this.#onItsWay -= characters;
    if (this.#onItsWay > WINDOW_CHARACTERS / 2) return;
    this.#goOn?.();
    this.#goOn = undefined;
  }
}

/** Executes the runs that the main process sends to this graph process. */
export const createHost = (options: HostOptions) => {
  const { executor, send, isLoss, residentBytes, takeCheckpointWrites, onClose } = options;
  const hosted = new Map<number, HostedRun>();
  const pipe = new EventPipe(send);

  /**
   * A getter in a graph's values may throw. Only readers of the values get the error; the run has succeeded.
   */
  const madeText = <Text>(make: () => Text): MadeText<Text> => {
    try {
      return { text: make() };
    } catch (error) {
      return { error: describeError(error, isLoss) };
    }
  };

  const toSent = (result: GraphResult, wantsValues: boolean): SentResult => {
    if (result.kind === "failed") return { kind: "failed", error: describeError(result.error, isLoss) };
    if (result.kind !== "completed") return result;
    const { values, interrupts, outputKeys, lastUnsafe } = result;
    return {
      kind: "completed",
      values: madeText(() => (wantsValues ? values() : undefined)),
      interrupts: interrupts && madeText(interrupts),
      outputKeys: wantsValues ? outputKeys : undefined,
      lastUnsafe,
    };
  };

  const execute = (message: Extract<ToGraphProcess, { kind: "execute" }>): void => {
    const { id, run, wanted, logged, wantsValues, publishesProtocol, keepsSpans, exported } = message;
    const here = new HostedRun(id, pipe, wanted, logged, wantsValues);
    here.execution = executor.execute(run, here, {
      isAlone: false,
      publishesProtocol,
      records: {
        keepsSpans,
        exported,
        onRecords(records, isLast) {
          if (isLast && hosted.has(id)) here.lastRecords = records;
          else send({ kind: "records", id, records });
        },
      },
      onGraphEnded: () => send({ kind: "graph-ended", id }),
    });
    hosted.set(id, here);
    void here.execution.result.then((result) => {
      const sent = toSent(result, here.wantsValues);
      pipe.flush();
      hosted.delete(id);
      send({ kind: "result", id, result: sent, records: here.lastRecords });
    });
  };

  return {
    receive(message: ToGraphProcess): void {
      const here = "id" in message ? hosted.get(message.id) : undefined;
      switch (message.kind) {
        case "execute":
          return execute(message);
        case "wanted":
          if (here !== undefined) Object.assign(here, { wanted: true, hasLog: message.logged });
          return;
        case "logged":
          return here?.hasLogged(message.failure);
        case "values":
          if (here !== undefined) here.wantsValues = true;
          return;
        case "stop":
          return here?.execution?.stop(message.reason);
        case "taken":
          return here?.taken(message.characters);
        case "ping":
          return send({
            kind: "pong",
            residentBytes: residentBytes(),
            ...(takeCheckpointWrites && { checkpointWrites: takeCheckpointWrites() }),
          });
        case "close":
          return onClose();
        case "listening":
        case "setup":
      }
    },
  };
};
