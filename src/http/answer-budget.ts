import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { attended, type TakersPatience } from "../lib/attended.ts";
import { unavailable } from "../lib/errors.ts";

/** Shorter answers are not counted: a socket takes them at once. */
const COUNTED_FROM_BYTES = 1024 * 1024;
/**
 * Of answers that are being sent. 120 callers who each asked for a state of 14 MB and took nothing of it ended a process
 * with a heap of 1 GiB.
 */
const IN_FLIGHT_AT_MOST_BYTES = 128 * 1024 * 1024;
/** Until it is taken, the whole of such an answer stays in memory here. 16 MB in ten minutes are 220 kbit/s. */
const PATIENCE: TakersPatience = { stalledMs: 60_000, takenWithinMs: 600_000 };

/**
 * Bounds the answers that wait to be taken. A read that comes when the budget is spent is refused and may be repeated;
 * what has changed something is answered in any case, because clients repeat a request that was refused. Streams and
 * long lists are made while they are taken, and bounded elsewhere.
 */
export const boundAnswers = (app: FastifyInstance, patience = PATIENCE): void => {
  let inFlight = 0;
  app.addHook("onSend", (request, reply, payload, done) => {
    // Characters: each is a byte at least.
    const bytes = typeof payload === "string" ? payload.length : 0;
    if (typeof payload !== "string" || bytes < COUNTED_FROM_BYTES || request.method === "HEAD")
      return done(null, payload);
    // One alone is always sent: refused for ever it could never be read.
    if (request.method === "GET" && inFlight > 0 && inFlight + bytes > IN_FLIGHT_AT_MOST_BYTES)
      return done(unavailable("Too many large answers are being sent at the moment."));
    const { raw } = reply;
    if (raw.destroyed) return done(null, "");
    inFlight += bytes;
    raw.once("close", () => {
      inFlight -= bytes;
    });
    void reply.header("content-length", Buffer.byteLength(payload));
    done(null, Readable.from(attended(raw, [payload], patience)));
  });
};
