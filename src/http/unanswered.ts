import { setTimeout as pause } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { OpenAnswers } from "./open-answers.ts";

/** Accepted requests get this time when the server stops. Requests that do not wait for a run take milliseconds. */
const ANSWERING_MS = 1_000;
const POLL_EVERY_MS = 10;

/**
 * Delays closing until accepted requests are answered, because SDKs up to 1.12 repeat a request whose connection ends.
 * Does not wait for begun answers (streams); register before hooks that close connections.
 */
export const answerBeforeClosing = (app: FastifyInstance, open: OpenAnswers): void => {
  const isSomeUnanswered = (): boolean =>
    [...open].some(([response, { ws }]) => !ws && !response.headersSent && !response.destroyed);
  app.addHook("preClose", async () => {
    const until = performance.now() + ANSWERING_MS;
    while (isSomeUnanswered() && performance.now() < until) await pause(POLL_EVERY_MS);
  });
};
