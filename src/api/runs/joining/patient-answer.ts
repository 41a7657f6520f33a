import { attended, LARGE_ANSWER_BYTES, WHOLE_ANSWER_PATIENCE } from "../../../http/large-answers.ts";
import { PassThrough, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyReply } from "fastify";
import { isLossOfAccess } from "../../../access/auth/refusals.ts";
import { CallerGoneError } from "../../../platform/domain/errors.ts";
import { lossOf } from "../../../engine/events/transports/event-sink.ts";

/** Proxies and clients close a silent connection after a minute or more. */
const WARMTH_MS = 5_000;

/** Piping a stream would cost a short run 3 % more. */
const bodyOf = (reply: FastifyReply): Writable => {
  // The application around the API may read the answer first.
  if (reply.request.isWrapped === true) {
    const body = new PassThrough();
    void reply.send(body);
    return body;
  }
  reply.hijack();
  return reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
};

/**
 * Sends the head at once, with white space that JSON allows, so that a client which is cut off knows the run's address.
 * The status is always 200, so a failure becomes `__error__`.
 */
export const answerPatiently = (
  reply: FastifyReply,
  answer: Promise<string>,
  warmthMs = WARMTH_MS,
): FastifyReply => {
  void reply.type("application/json; charset=utf-8");
  const body = bodyOf(reply);
  body.write("\n");
  const warmth = setInterval(() => body.write("\n"), warmthMs);
  answer
    .catch((error: unknown) => {
      if (error instanceof CallerGoneError) return "";
      if (isLossOfAccess(error)) return JSON.stringify({ __error__: lossOf(error) });
      reply.log.error({ err: error }, "a waiting request failed after its answer had started");
      return JSON.stringify({ __error__: { error: "ServerError", message: "The server could not answer." } });
    })
    .then(async (text) => {
      // A line break within a string would not be valid JSON.
      clearInterval(warmth);
      if (reply.raw.destroyed) return;
      if (text.length < LARGE_ANSWER_BYTES) return void body.end(text);
      reply.countUnread(text.length);
      await pipeline(attended(reply.raw, [text], WHOLE_ANSWER_PATIENCE), body);
    })
    .finally(() => clearInterval(warmth))
    .catch((error: unknown) => body.destroy(error as Error));
  reply.raw.once("close", () => {
    clearInterval(warmth);
    body.destroy();
  });
  return reply;
};
