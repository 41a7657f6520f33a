import { Readable } from "node:stream";
import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Caller } from "../access/caller.ts";
import { unavailable } from "../platform/domain/errors.ts";
import { createRoom, type Room } from "./room.ts";

declare module "fastify" {
  interface FastifyReply {
    /** For answers that do not pass through `send` as one text. Ends when the response closes at the latest. */
    countUnread(bytes: number): () => void;
  }
}

/** A socket takes shorter answers at once. */
export const LARGE_ANSWER_BYTES = 1024 * 1024;

/** Each state of 14 MB costs about four times as much while it is made. */
const MADE_AT_ONCE = 8;
/** Of text; a state whose sending goes on holds three times as much. */
const UNREAD_BYTES_AT_MOST = 64 * 1024 * 1024;
/** Bounds the memory of whole states and large events. */
export const createReadRoom = (unreadBytesAtMost = UNREAD_BYTES_AT_MOST): Room =>
  createRoom({ places: MADE_AT_ONCE, unreadBytesAtMost });

export interface TakersPatience {
  /** A client that takes no piece for this time is disconnected. */
  stalledMs: number;
  /** A client that has not taken the whole answer in this time is disconnected. Undefined: no limit. */
  takenWithinMs?: number;
}

/** The whole answer stays in memory until then. 16 MB in ten minutes are 220 kbit/s. */
export const WHOLE_ANSWER_PATIENCE: TakersPatience = { stalledMs: 60_000, takenWithinMs: 600_000 };

/** Slow connections pass: 256 KiB a minute are 35 kbit/s. A fast socket takes 16 MiB in 64 turns. */
const PIECE_CHARACTERS = 256 * 1024;
/** A blocked event loop delays the timer and the pieces alike, so one late check proves nothing. */
const CHECKS_AT_MOST = 4;

/**
 * Yields smaller pieces and disconnects a client that stops reading. The timers run until the response closes, because
 * the last pieces are in flight when the generator ends.
 */
export const attended = (
  response: ServerResponse,
  pieces: AsyncIterable<string> | Iterable<string>,
  patience: TakersPatience,
): Readable =>
  // By default, a stream makes sixteen pieces ahead.
  Readable.from(attendedParts(response, pieces, patience), { highWaterMark: 1 });

async function* attendedParts(
  response: ServerResponse,
  pieces: AsyncIterable<string> | Iterable<string>,
  { stalledMs, takenWithinMs }: TakersPatience,
): AsyncGenerator<string, void, undefined> {
  if (response.destroyed) return;
  let isOffered = false;
  let checks = 0;
  const timer = setInterval(() => {
    if (!isOffered) return;
    checks += 1;
    if (checks > CHECKS_AT_MOST) response.destroy();
  }, stalledMs / CHECKS_AT_MOST);
  const end = takenWithinMs === undefined ? undefined : setTimeout(() => response.destroy(), takenWithinMs);
  response.once("close", () => {
    clearInterval(timer);
    clearTimeout(end);
  });
  for await (const piece of pieces) {
    for (const part of partsOf(piece)) {
      checks = 0;
      isOffered = true;
      yield part;
    }
    // The client is not late while the server makes the next piece.
    isOffered = false;
  }
  checks = 0;
  isOffered = true;
}

/** Cutting a surrogate pair would corrupt its character. */
const isFirstOfPair = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

function* partsOf(text: string): Generator<string, void, undefined> {
  for (let start = 0; start < text.length;) {
    let end = start + PIECE_CHARACTERS;
    if (end < text.length && isFirstOfPair(text.charCodeAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

/** A large answer has more than ten listeners with those of the stream. Node would report them as a leak. */
const LISTENERS_AT_MOST = 20;

const isRead = ({ method, routeOptions }: FastifyRequest): boolean =>
  method === "GET" || method === "HEAD" || routeOptions.config.isRead === true;

/** Counts large answers, and disconnects clients that do not read them. */
export const boundAnswers = (app: FastifyInstance, room: Room, patience = WHOLE_ANSWER_PATIENCE): void => {
  app.decorateReply("countUnread", function countUnread(this: FastifyReply, bytes) {
    const { raw, request } = this;
    // The response has already fired `close`, so these bytes would never be released.
    if (raw.destroyed || raw.closed) return () => undefined;
    const taken = room.unread(request.caller as Caller | undefined, bytes);
    raw.setMaxListeners(LISTENERS_AT_MOST);
    raw.once("close", taken);
    return () => {
      raw.off("close", taken);
      taken();
    };
  });
  app.addHook("onSend", (request, reply, payload, done) => {
    // Characters are a lower bound of the bytes.
    if (typeof payload !== "string" || payload.length < LARGE_ANSWER_BYTES || request.method === "HEAD")
      return done(null, payload);
    const { raw } = reply;
    if (raw.destroyed) return done(null, "");
    // Clients would repeat a refused write.
    if (isRead(request) && room.isOverfull(request.caller as Caller | undefined))
      return done(unavailable("Too many large answers are being sent at the moment."));
    reply.countUnread(payload.length);
    void reply.header("content-length", Buffer.byteLength(payload));
    done(null, attended(raw, [payload], patience));
  });
};

/** Each piece except the last, which is returned, has at least a megabyte. */
async function* inPieces(items: AsyncIterable<string>): AsyncGenerator<string, string, undefined> {
  let piece: string[] = ["["];
  let length = 0;
  let separator = "";
  for await (const item of items) {
    piece.push(separator, item);
    separator = ",";
    length += item.length;
    if (length < LARGE_ANSWER_BYTES) continue;
    yield piece.join("");
    piece = [];
    length = 0;
  }
  piece.push("]");
  return piece.join("");
}

/**
 * Sends a list as its items are made: the next piece after the previous one was taken. An error after the first
 * megabyte cuts the connection, because a partial list must not pass for a complete one.
 */
export const sendItems = async (
  reply: FastifyReply,
  items: AsyncIterable<string>,
  patience: TakersPatience = { stalledMs: WHOLE_ANSWER_PATIENCE.stalledMs },
): Promise<FastifyReply> => {
  const pieces = inPieces(items);
  const first = await pieces.next();
  void reply.type("application/json; charset=utf-8");
  if (first.done === true) return reply.send(first.value);
  const all = async function* () {
    try {
      for (let piece: IteratorResult<string, string> = first; ; piece = await pieces.next()) {
        const taken = reply.countUnread(piece.value.length);
        yield piece.value;
        // Before the next piece is made, which may wait until this caller has left less unread.
        taken();
        if (piece.done === true) return;
      }
    } finally {
      await pieces.return("");
    }
  };
  return reply.send(attended(reply.raw, all(), patience));
};
