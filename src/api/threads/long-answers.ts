import { attended, type TakersPatience } from "../../http/attended.ts";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { callerGone } from "../../http/caller-gone.ts";
import { unavailable } from "../../platform/domain/errors.ts";
import { createGate } from "../../platform/lib/gate.ts";
import type { WhenLarge } from "../../platform/lib/large-answers.ts";
import { createYieldPoint, type Yielder } from "../../platform/lib/yielder.ts";

/** An answer that is longer is sent piece by piece, and only so many are in the making at a time. */
export const LONG_ANSWER_BYTES = 1024 * 1024;
const AT_ONCE = 4;
const PATIENCE_MS = 30_000;
/** What is not taken stays in memory here: a megabyte, or one item that is longer. */
const PATIENCE: TakersPatience = { stalledMs: 60_000 };
const JSON_TYPE = "application/json; charset=utf-8";

/**
 * Answers of any length, in bounded memory: what is not sent yet is not made yet, and those who would make much of it
 * at once wait for each other.
 */
export interface LongAnswers {
  /**
   * Waits for a place among the long answers, which is held until this one has been sent or its connection is closed.
   * Asked again for the same answer, it has that place. Throws `unavailable` after half a minute.
   */
  begin(reply: FastifyReply, signal: AbortSignal): Promise<void>;
  /** Sends JSON text that is there already, in pieces. */
  sendPieces(reply: FastifyReply, pieces: readonly string[]): FastifyReply;
  /**
   * Sends a JSON array whose items are made while they are sent. What fails before there is a megabyte of them is
   * refused like any request; later the connection is cut, so that nobody takes a part for the whole. `items` awaits
   * `whenLarge` before it makes one that is large: 120 callers made 14 MB each before they were told to wait.
   */
  sendItems(
    reply: FastifyReply,
    items: (whenLarge: WhenLarge) => AsyncIterable<string>,
  ): Promise<FastifyReply>;
}

export const createLongAnswers = (yielder: Yielder, patience = PATIENCE): LongAnswers => {
  const gate = createGate({
    places: AT_ONCE,
    waitMs: PATIENCE_MS,
    full: () => unavailable("Too many long answers are being sent at the moment."),
  });

  const enter = async (response: ServerResponse, signal: AbortSignal): Promise<void> => {
    const leave = await gate.enter(signal);
    for (const end of ["finish", "close"]) response.once(end, leave);
    if (response.destroyed) leave();
  };

  const places = new WeakMap<ServerResponse, Promise<void>>();
  const begin: LongAnswers["begin"] = async ({ raw }, signal) => {
    let place = places.get(raw);
    if (place === undefined) places.set(raw, (place = enter(raw, signal)));
    await place;
  };

  return {
    begin,

    sendPieces: (reply, pieces) => {
      void reply.type(JSON_TYPE);
      const [only] = pieces;
      if (pieces.length === 1) return reply.send(only);
      return reply.send(Readable.from(attended(reply.raw, pieces, patience)));
    },

    async sendItems(reply, items) {
      const signal = callerGone(reply.raw);
      const whenLarge = () => begin(reply, signal);
      const pieces = inPieces(items(whenLarge), createYieldPoint(yielder, signal), whenLarge)[
        Symbol.asyncIterator
      ]();
      const first = await pieces.next();
      const second = await pieces.next();
      void reply.type(JSON_TYPE);
      if (second.done === true) return reply.send(first.value ?? "[]");
      const all = async function* () {
        yield first.value ?? "";
        yield second.value;
        yield* { [Symbol.asyncIterator]: () => pieces };
      };
      return reply.send(Readable.from(attended(reply.raw, all(), patience)));
    },
  };
};

/** The text of a JSON array in pieces of a megabyte, or of one item that is longer. `whenLong`: before the second. */
async function* inPieces(
  items: AsyncIterable<string>,
  yieldPoint: () => Promise<void>,
  whenLong: () => Promise<void>,
): AsyncGenerator<string, void, undefined> {
  let piece: string[] = ["["];
  let length = 0;
  let separator = "";
  for await (const item of items) {
    await yieldPoint();
    piece.push(separator, item);
    separator = ",";
    length += item.length;
    if (length < LONG_ANSWER_BYTES) continue;
    await whenLong();
    yield piece.join("");
    piece = [];
    length = 0;
  }
  piece.push("]");
  yield piece.join("");
}
