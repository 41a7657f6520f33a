import { setTimeout as pause } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { OpenAnswers } from "./open-answers.ts";

/** What a server that stops gives to requests that it has taken; those that are not for a run's end take milliseconds. */
const ANSWERING_MS = 1_000;
const POLL_EVERY_MS = 10;

/**
 * Has a server that stops answer what it was asked before it cuts its connections: whoever is cut off does not know whether
 * his run was stored, and the SDKs up to 1.12 send every request again. An answer that has begun (a stream, whoever waits for
 * a run) is not waited for: what it tells can be read elsewhere. Register before what cuts connections.
 */
export const answerBeforeClosing = (app: FastifyInstance, open: OpenAnswers): void => {
  const isSomeUnanswered = (): boolean =>
    [...open].some(([response, { ws }]) => !ws && !response.headersSent && !response.destroyed);
  app.addHook("preClose", async () => {
    const until = performance.now() + ANSWERING_MS;
    while (isSomeUnanswered() && performance.now() < until) await pause(POLL_EVERY_MS);
  });
};
