import type { WebSocket } from "ws";
import {
  type EventSink,
  inPieces,
  type SentEvent,
  STALLED_MS,
  TAKEN_CHARACTERS,
  WRITE_CHARACTERS,
} from "./event-sink.ts";

/** A subset, so that tests can imitate a slow socket. */
type Socket = Pick<
  WebSocket,
  "send" | "close" | "terminate" | "once" | "readyState" | "OPEN" | "bufferedAmount"
>;

export const shareSocket = (socket: Socket) => {
  const listeners = new Set<() => void>();
  let isGone = socket.readyState !== socket.OPEN;
  const leave = (): void => {
    isGone = true;
    for (const listener of listeners) listener();
    listeners.clear();
  };
  socket.once("close", leave);

  const write = async (piece: string, fin: boolean): Promise<void> =>
    await new Promise((resolve) => {
      const end = (): void => {
        listeners.delete(end);
        resolve();
      };
      listeners.add(end);
      socket.send(piece, { fin }, end);
    });

  /** Unsent data stay in memory, so a message is written in pieces. */
  const sendWhole = async (pieces: Iterable<string>): Promise<"taken" | "gone" | "stalled"> => {
    let since = performance.now();
    let given = 0;
    let last: string | undefined;
    const give = async (piece: string, fin: boolean): Promise<boolean> => {
      given += piece.length;
      const written = write(piece, fin);
      if (socket.bufferedAmount < WRITE_CHARACTERS) return true;
      let timer: NodeJS.Timeout | undefined;
      const stalled = new Promise<boolean>((resolve) => {
        timer = setTimeout(() => resolve(true), Math.max(0, since + STALLED_MS - performance.now()));
      });
      const isStalled = await Promise.race([written.then(() => false), stalled]);
      clearTimeout(timer);
      if (given > TAKEN_CHARACTERS) {
        given = 0;
        since = performance.now();
      }
      return !isStalled;
    };
    for (const piece of pieces) {
      if (last !== undefined && !(await give(last, false))) return "stalled";
      if (isGone) return "gone";
      last = piece;
    }
    return (await give(last ?? "", true)) ? (isGone ? "gone" : "taken") : "stalled";
  };

  function* piecesOf({ before = "", data, after = "" }: Omit<SentEvent, "seq" | "event">): Generator<string> {
    if (data.length <= WRITE_CHARACTERS) return yield before + data + after;
    yield before;
    yield* inPieces(data);
    yield after;
  }

  let turn: Promise<unknown> = Promise.resolve();
  return {
    get isGone(): boolean {
      return isGone;
    },
    send(message: Omit<SentEvent, "seq" | "event">): Promise<"taken" | "gone" | "stalled"> {
      const sent = turn.then(() => (isGone ? "gone" : sendWhole(piecesOf(message))));
      turn = sent.catch(() => undefined);
      return sent;
    },
    onGone(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    drop: (): void => socket.terminate(),
    refuse(code: number, reason: string): void {
      if (isGone) return;
      leave();
      socket.close(code, Buffer.from(reason).subarray(0, REASON_BYTES_AT_MOST).toString());
    },
  };
};

/** A close frame has room for 123 bytes (RFC 6455). */
const REASON_BYTES_AT_MOST = 120;

export const createSocketSink = (socket: ReturnType<typeof shareSocket>): EventSink => {
  let forget: () => void = () => undefined;
  return {
    get isGone() {
      return socket.isGone;
    },
    onGone(listener) {
      forget = socket.onGone(listener);
    },
    open: () => undefined,
    async write(events) {
      for (const event of events) {
        const how = await socket.send(event);
        if (how !== "taken") return how;
      }
      return "taken";
    },
    drop: () => socket.drop(),
    close: () => forget(),
  };
};
