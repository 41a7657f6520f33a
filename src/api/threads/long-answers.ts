import { attended, type TakersPatience } from "../../http/attended.ts";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { callerGone } from "../../http/caller-gone.ts";
import { unavailable } from "../../platform/domain/errors.ts";
import { createGate } from "../../platform/lib/gate.ts";
import type { ReadBudget } from "../../platform/lib/large-answers.ts";
import { createYieldPoint, type TimeSlicer } from "../../platform/lib/time-slicer.ts";

/** Longer answers are sent in pieces, to `ANSWERS_AT_ONCE` callers at a time. */
export const PIECE_CHARACTERS = 1024 * 1024;
const ANSWERS_AT_ONCE = 4;
const PATIENCE_MS = 30_000;
/** Bounds how long an unsent piece stays in memory. */
const PATIENCE: TakersPatience = { stalledMs: 60_000 };
const JSON_TYPE = "application/json; charset=utf-8";

/** The next piece is made after the previous one was sent, which bounds memory. */
export interface LongAnswers {
  /**
   * Reserving takes a place among the long answers until the response ends. Rejects with `unavailable` after
   * `PATIENCE_MS`.
   */
  placeFor(reply: FastifyReply, signal: AbortSignal): ReadBudget;
  sendPieces(reply: FastifyReply, pieces: readonly string[]): FastifyReply;
  /**
   * An error after the first megabyte cuts the connection, because a partial array must not pass for a complete one.
   * `items` must reserve before a large item: 120 callers made 14 MB each.
   */
  sendItems(reply: FastifyReply, items: (budget: ReadBudget) => AsyncIterable<string>): Promise<FastifyReply>;
}

export const createLongAnswers = (slicer: TimeSlicer, patience = PATIENCE): LongAnswers => {
  const gate = createGate(ANSWERS_AT_ONCE, PATIENCE_MS, () =>
    unavailable("Too many long answers are being sent at the moment."),
  );

  const enter = async (response: ServerResponse, signal: AbortSignal): Promise<void> => {
    const leave = await gate.enter(signal);
    for (const end of ["finish", "close"]) response.once(end, leave);
    if (response.destroyed) leave();
  };

  const places = new WeakMap<ServerResponse, Promise<void>>();
  const placeFor: LongAnswers["placeFor"] = ({ raw }, signal) => ({
    async reserve() {
      let place = places.get(raw);
      if (place === undefined) places.set(raw, (place = enter(raw, signal)));
      await place;
    },
  });

  return {
    placeFor,

    sendPieces: (reply, pieces) => {
      void reply.type(JSON_TYPE);
      const [only] = pieces;
      if (pieces.length === 1) return reply.send(only);
      return reply.send(Readable.from(attended(reply.raw, pieces, patience)));
    },

    async sendItems(reply, items) {
      const signal = callerGone(reply.raw);
      const budget = placeFor(reply, signal);
      const pieces = inPieces(items(budget), createYieldPoint(slicer, signal), budget)[
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

/** Each piece except the last has at least a megabyte and needs a reservation. */
async function* inPieces(
  items: AsyncIterable<string>,
  yieldPoint: () => Promise<void>,
  budget: ReadBudget,
): AsyncGenerator<string, void, undefined> {
  let piece: string[] = ["["];
  let length = 0;
  let separator = "";
  for await (const item of items) {
    await yieldPoint();
    piece.push(separator, item);
    separator = ",";
    length += item.length;
    if (length < PIECE_CHARACTERS) continue;
    await budget.reserve(length);
    yield piece.join("");
    piece = [];
    length = 0;
  }
  piece.push("]");
  yield piece.join("");
}
