import type { FastifyInstance } from "fastify";
import type { ServerOptions, ServerResponse } from "node:http";
import type { OpenAnswers } from "../open-answers.ts";

/** How many connections a process takes, and how long each may be slow. */
export interface ConnectionLimits {
  atMost: number;
  /** Of the headers of a request, and of a new connection until they have come. */
  headersMs: number;
  /** Of a request, whole. */
  requestMs: number;
  /** Between two requests. */
  keepAliveMs: number;
  /** In which a client has to take an answer that is small; the large ones have a time of their own (attended.ts). */
  answerTakenMs?: number;
}

/**
 * Node looks so often for those who are late, 30 s if nobody says otherwise: 145 of 1,000 slow connections were still there
 * after 83 s.
 */
const POLL_EVERY_MS = 2_000;
const ANSWER_TAKEN_MS = 60_000;

/** What Node's server has to know before it is made. */
export const serverOptionsOf = ({ headersMs, requestMs }: ConnectionLimits): ServerOptions => ({
  headersTimeout: headersMs,
  requestTimeout: requestMs,
  connectionsCheckingInterval: Math.min(POLL_EVERY_MS, headersMs),
});

/**
 * Takes no more connections than this, and cuts off who asks and does not take the answers: what is written waits in memory
 * here, and the next request of the connection with it. Streams and large answers look after their readers themselves.
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
