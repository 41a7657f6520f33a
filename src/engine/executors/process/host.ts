import type { TraceRecords } from "../../../graphs/trace/recorder.ts";
import type { GraphExecution, GraphExecutor, GraphResult } from "../executor.ts";
import { describeError } from "./described-error.ts";
import { createEventPipe, type PipedSink } from "./event-pipe.ts";
import type { FromGraphProcess, MadeText, SentResult, ToGraphProcess } from "./messages.ts";

interface HostOptions {
  executor: Pick<GraphExecutor<GraphResult>, "execute">;
  send(message: FromGraphProcess): void;
  isLoss(error: unknown): boolean;
  residentBytes(): number;
  /** See `pong` in messages.ts. */
  takeCheckpointWrites?: () => readonly number[];
  onClose(): void;
}

interface Hosted {
  execution: GraphExecution<GraphResult>;
  sink: PipedSink;
  wantsValues: boolean;
  lastRecords?: TraceRecords;
}

export const createHost = (options: HostOptions) => {
  const { executor, send, isLoss, residentBytes, takeCheckpointWrites, onClose } = options;
  const hosted = new Map<number, Hosted>();
  const events = createEventPipe(
    (batches) => send({ kind: "events", batches }),
    (id) => send({ kind: "log", id }),
  );

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

  const sentResult = async ({ execution, wantsValues }: Hosted): Promise<SentResult> => {
    const result = await execution.result;
    if (result.kind === "failed") return { kind: "failed", error: describeError(result.error, isLoss) };
    if (result.kind === "stopped" || result.kind === "refused") return result;
    const { values, interrupts, outputKeys, lastUnsafe } = result;
    return {
      kind: "completed",
      values: madeText(() => (wantsValues ? values() : undefined)),
      interrupts: interrupts === undefined ? undefined : madeText(interrupts),
      outputKeys: wantsValues ? outputKeys : undefined,
      lastUnsafe,
    };
  };

  const execute = ({
    id,
    run,
    wanted,
    logged,
    wantsValues,
    publishesProtocol,
    keepsSpans,
    exported,
  }: Extract<ToGraphProcess, { kind: "execute" }>): void => {
    const sink = events.open(id, { wanted, logged });
    const execution = executor.execute(run, sink, {
      isAlone: false,
      publishesProtocol,
      records: {
        keepsSpans,
        exported,
        onRecords(records, isLast) {
          const ended = isLast ? hosted.get(id) : undefined;
          if (ended === undefined) send({ kind: "records", id, records });
          else ended.lastRecords = records;
        },
      },
      onGraphEnded: () => send({ kind: "graph-ended", id }),
    });
    const here: Hosted = { execution, sink, wantsValues };
    hosted.set(id, here);
    // `wantsValues` may change until the graph has ended.
    void execution.result
      .then(() => sentResult(here))
      .then((result) => {
        events.flush();
        hosted.delete(id);
        send({ kind: "result", id, result, records: here.lastRecords });
      });
  };

  return {
    receive(message: ToGraphProcess): void {
      switch (message.kind) {
        case "execute":
          return execute(message);
        case "wanted":
          return hosted.get(message.id)?.sink.want(message.logged);
        case "logged":
          return hosted.get(message.id)?.sink.hasLogged(message.failure);
        case "values": {
          const here = hosted.get(message.id);
          if (here !== undefined) here.wantsValues = true;
          return;
        }
        case "stop":
          return hosted.get(message.id)?.execution.stop(message.reason);
        case "taken":
          return hosted.get(message.id)?.sink.taken(message.characters);
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
        case "load":
          return;
      }
    },
  };
};
