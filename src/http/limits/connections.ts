import type { FastifyInstance } from "fastify";
import type { ServerOptions, ServerResponse } from "node:http";
import type { OpenAnswers } from "../open-answers.ts";

export interface ConnectionLimits {
  atMost: number;
  /** For the headers of a request, and for a new connection until they arrive. */
  headersMs: number;
  /** For a whole request. */
  requestMs: number;
  /** Between two requests. */
  keepAliveMs: number;
  /** For a client to read a small answer. Large answers have their own time-out (large-answers.ts). */
  answerTakenMs?: number;
}

/** With Node's default of 30 s, 145 of 1,000 slow connections were still open after 83 s. */
const POLL_EVERY_MS = 2_000;
const ANSWER_TAKEN_MS = 60_000;

export const serverOptionsOf = ({ headersMs, requestMs }: ConnectionLimits): ServerOptions => ({
  headersTimeout: headersMs,
  requestTimeout: requestMs,
  connectionsCheckingInterval: Math.min(POLL_EVERY_MS, headersMs),
});

/**
 * Closes connections of clients that do not read: unread answers and later requests stay in memory. Streams and large
 * answers have their own time-outs.
 */
export const limitConnections = (
  app: FastifyInstance,
  open: OpenAnswers,
  { atMost, answerTakenMs = ANSWER_TAKEN_MS }: ConnectionLimits,
): void => {
  app.server.maxConnections = atMost;
  const completeSince = new WeakMap<ServerResponse, number>();
  const timer = setInterval(
    () => {
      const now = performance.now();
      for (const [response, { ws }] of open) {
        if (ws || !response.writableEnded) continue;
        const since = completeSince.get(response);
        if (since === undefined) completeSince.set(response, now);
        else if (now - since > answerTakenMs) response.destroy();
      }
    },
    Math.min(answerTakenMs / 2, POLL_EVERY_MS * 5),
  );
  timer.unref();
  app.addHook("onClose", (_app, done) => {
    clearInterval(timer);
    done();
  });
};
