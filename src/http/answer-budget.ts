import { LARGE_ANSWER_BYTES } from "../platform/lib/large-answers.ts";
import { tooManyLargeAnswers, type ResponseBudget } from "./response-budget.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";
import { attended, WHOLE_ANSWER_PATIENCE } from "./attended.ts";
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";

/**
 * Bounds the memory of whole answers that clients have not read yet. Reads are refused if there is no room. Writes are
 * always answered, because clients would repeat them. Streams and long lists are bounded elsewhere. `callerLimits`
 * undefined: callers are not distinguished.
 */
export const boundAnswers = (
  app: FastifyInstance,
  room: ResponseBudget,
  callerLimits?: Pick<CallerLimits, "counted">,
  patience = WHOLE_ANSWER_PATIENCE,
): void => {
  if (callerLimits !== undefined) {
    app.addHook("onRequest", (request, reply, done) => {
      room.belongsTo(reply.raw, () => callerLimits.counted(request));
      done();
    });
  }
  app.addHook("onSend", (request, reply, payload, done) => {
    // A lower bound of the bytes.
    if (typeof payload !== "string" || payload.length < LARGE_ANSWER_BYTES || request.method === "HEAD")
      return done(null, payload);
    const { raw } = reply;
    if (raw.destroyed) return done(null, "");
    const isRefusable = request.method === "GET" || request.routeOptions.config.isRead === true;
    if (!room.send(raw, payload.length, { isRefusable })) return done(tooManyLargeAnswers());
    void reply.header("content-length", Buffer.byteLength(payload));
    done(null, Readable.from(attended(raw, [payload], patience)));
  });
};
