import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";

/** The largest body that options allow has 200 MB. */
const LINGER_BYTES = 256 * 1024 * 1024;
const LINGER_MS = 30_000;

const discardRest = async (body: IncomingMessage): Promise<void> => {
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
 * Ends the answer only after the client's body: closing a connection with unread bytes resets it, and the client loses
 * the answer. The caller must set the content length.
 */
export const answerThatOutlastsBody = (text: string, body: IncomingMessage): Readable =>
  Readable.from(
    (async function* () {
      yield text;
      await discardRest(body);
    })(),
  );
