import type { FastifyReply } from "fastify";
import type { ResponseBudget } from "../../http/response-budget.ts";
import type { WhenLarge } from "../../platform/lib/large-answers.ts";

export const NO_CONTENT = 204;

export const sendJson = (reply: FastifyReply, text: string): FastifyReply =>
  reply.type("application/json; charset=utf-8").send(text);

/** The budget may refuse a large answer to a read. */
export const roomToRead =
  (room: ResponseBudget, { raw }: FastifyReply): WhenLarge =>
  (bytes) =>
    room.reserve(raw, bytes, { isRefusable: true });

/** The change has happened, so the budget does not refuse its answer. */
export const roomAfterChange =
  (room: ResponseBudget, { raw }: FastifyReply): WhenLarge =>
  (bytes) =>
    room.reserve(raw, bytes, { isRefusable: false });
