import { LARGE_ANSWER_BYTES, type ReadBudget } from "../platform/lib/large-answers.ts";
import { tooManyLargeAnswers, type ResponseBudget } from "./response-budget.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";
import { attended, WHOLE_ANSWER_PATIENCE } from "./attended.ts";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyReply {
    /** This answer's part of the response budget. See `ResponseBudget` for `isRefusable`; by default of reads only. */
    budget(options?: { isRefusable?: boolean }): AnswerBudget;
  }
}

export interface AnswerBudget extends ReadBudget {
  /** See `ResponseBudget`. */
  send(bytes: number): boolean;
}

const isRead = ({ method, routeOptions }: FastifyRequest): boolean =>
  method === "GET" || method === "HEAD" || routeOptions.config.isRead === true;

/**
 * Bounds the memory of whole answers that clients have not read yet; undefined `callerLimits`: callers are not
 * distinguished. Refuses only reads, because clients would repeat refused writes.
 */
export const boundAnswers = (
  app: FastifyInstance,
  responseBudget: ResponseBudget,
  callerLimits?: Pick<CallerLimits, "counted">,
  patience = WHOLE_ANSWER_PATIENCE,
): void => {
  if (callerLimits !== undefined) {
    app.addHook("onRequest", (request, reply, done) => {
      responseBudget.belongsTo(reply.raw, () => callerLimits.counted(request));
      done();
    });
  }
  app.decorateReply(
    "budget",
    function budget(this: FastifyReply, { isRefusable = isRead(this.request) } = {}) {
      return {
        reserve: (bytes: number) => responseBudget.reserve(this.raw, bytes, { isRefusable }),
        send: (bytes: number) => responseBudget.send(this.raw, bytes, { isRefusable }),
      };
    },
  );
  app.addHook("onSend", (request, reply, payload, done) => {
    // Characters are a lower bound of the bytes.
    if (typeof payload !== "string" || payload.length < LARGE_ANSWER_BYTES || request.method === "HEAD")
      return done(null, payload);
    const { raw } = reply;
    if (raw.destroyed) return done(null, "");
    if (!reply.budget().send(payload.length)) return done(tooManyLargeAnswers());
    void reply.header("content-length", Buffer.byteLength(payload));
    done(null, Readable.from(attended(raw, [payload], patience)));
  });
};
