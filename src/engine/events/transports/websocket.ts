import type { WebSocket } from "ws";
import {
  type EventSink,
  inPieces,
  type SentEvent,
  WRITE_CHARACTERS,
  writePieces,
  type Written,
} from "./event-sink.ts";

/** A subset, so that tests can imitate a slow socket. */
type Socket = Pick<
  WebSocket,
  "send" | "close" | "terminate" | "once" | "readyState" | "OPEN" | "bufferedAmount"
>;

type Message = Omit<SentEvent, "seq" | "event">;

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
  const sendWhole = ({ before = "", data, after = "" }: Message): Promise<Written> => {
    let isLast = false;
    function* pieces(): Generator<string, void> {
      isLast = data.length <= WRITE_CHARACTERS;
      if (isLast) return yield before + data + after;
      yield before;
      yield* inPieces(data);
      isLast = true;
      yield after;
    }
    const give = (piece: string): Promise<void> | undefined => {
      const written = write(piece, isLast);
      return socket.bufferedAmount < WRITE_CHARACTERS ? undefined : written;
    };
    return writePieces(pieces(), give, () => isGone);
  };

  let turn: Promise<unknown> = Promise.resolve();
  return {
    get isGone(): boolean {
      return isGone;
    },
    send(message: Message): Promise<Written> {
      const sent = turn.then(() => sendWhole(message));
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
