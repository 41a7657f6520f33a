import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { BodyCharge } from "./body-budget.ts";

/** A message must arrive whole within this time, like a request. */
const WHOLE_WITHIN_MS = 60_000;
/** Header bytes of a client's ping or pong frame. */
const CONTROL_FRAME_BYTES = 6;

/**
 * Charges received but unprocessed bytes to the body budget. Otherwise 1,000 sockets with an unfinished message of 16
 * MB would take 16 GB.
 */
export interface SocketIntake extends BodyCharge {
  /** Disconnects a client that exceeds the budget or does not finish a message. */
  watch(socket: WebSocket, connection: Duplex): void;
}

export const createSocketIntake = (charge: BodyCharge): SocketIntake => {
  /** Bytes of an unfinished message. */
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
      // Runs before ws parses the piece, which may complete a message.
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
