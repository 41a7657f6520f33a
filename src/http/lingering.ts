import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";

/** The largest body that options allow has 200 MB. */
const LINGER_BYTES = 256 * 1024 * 1024;
const LINGER_MS = 30_000;

/** Reads on and throws away, until the client has sent everything, leaves, or sends for too long. */
const readAway = async (body: IncomingMessage): Promise<void> => {
  if (body.complete || body.destroyed) return;
  await new Promise<void>((resolve) => {
    let bytes = 0;
    const stop = (): void => {
      clearTimeout(timer);
      body.off("data", onData).off("end", stop).off("close", stop);
      resolve();
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES) stop();
    };
    const timer = setTimeout(stop, LINGER_MS);
    body.on("data", onData).on("end", stop).on("close", stop);
  });
};

/**
 * An answer to a client that still sends. It goes out at once and ends when the client's body has: a connection that is
 * closed over unread bytes is reset, and the reset makes the client lose what it was answered. Send its length with it.
 */
export const whileClientSends = (text: string, body: IncomingMessage): Readable =>
  Readable.from(
    (async function* () {
      yield text;
      await readAway(body);
    })(),
  );
