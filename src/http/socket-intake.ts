import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { BodyCharge } from "./body-budget.ts";

/** A message must have arrived whole within this time, as a request. */
const WHOLE_WITHIN_MS = 60_000;
/** Of a client's frame that is a ping or a pong, beside what it carries. */
const CONTROL_FRAME_BYTES = 6;

/**
 * What a client has sent over its WebSocket and what is not worked off yet counts among the bodies that this server takes
 * in. 1,000 sockets that each began a message of 16 MB and did not end it would take 16 GB.
 */
export interface SocketIntake extends BodyCharge {
  /** Counts from now on. A client that sends more than there is room for, or ends no message, is cut off. */
  watch(socket: WebSocket, connection: Duplex): void;
}

export const createSocketIntake = (charge: BodyCharge): SocketIntake => {
  /** Bytes of a message that has not ended. */
  let unfinished = 0;
  /** Whether messages wait for their answers. */
  let isBusy = false;
  let timer: NodeJS.Timeout | undefined;
  const forgetUnfinished = (): void => {
    unfinished = 0;
    clearTimeout(timer);
    timer = undefined;
  };

  return {
    grow: (bytes) => charge.grow(bytes),
    release() {
      isBusy = false;
      charge.release();
    },
    watch(socket, connection) {
      // Before ws looks into the piece.
      connection.prependListener("data", (piece: Buffer) => {
        unfinished += piece.length;
        timer ??= setTimeout(() => socket.terminate(), WHOLE_WITHIN_MS);
        if (charge.grow(piece.length) !== "taken") socket.terminate();
      });
      socket.prependListener("message", () => {
        isBusy = true;
        forgetUnfinished();
      });
      const forgetControlFrame = (carried: Buffer): void => {
        unfinished -= CONTROL_FRAME_BYTES + carried.length;
        if (unfinished > 0) return;
        forgetUnfinished();
        if (!isBusy) charge.release();
      };
      socket.on("ping", forgetControlFrame);
      socket.on("pong", forgetControlFrame);
      socket.once("close", () => {
        forgetUnfinished();
        charge.release();
      });
    },
  };
};
