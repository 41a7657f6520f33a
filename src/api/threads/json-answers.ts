import type { FastifyReply } from "fastify";
import type { ResponseBudget } from "../../http/response-budget.ts";
import type { WhenLarge } from "../../platform/lib/large-answers.ts";

export const NO_CONTENT = 204;

/** The services answer JSON text: it goes out as it is. */
export const sendJson = (reply: FastifyReply, text: string): FastifyReply =>
  reply.type("application/json; charset=utf-8").send(text);

/** Room for a large answer to a read, which may be refused. */
export const roomToRead =
  (room: ResponseBudget, { raw }: FastifyReply): WhenLarge =>
  (bytes) =>
    room.reserve(raw, bytes, { isRefusable: true });

/** Room for a large answer to a change: it has happened, so it is answered. */
export const roomAfterChange =
  (room: ResponseBudget, { raw }: FastifyReply): WhenLarge =>
  (bytes) =>
    room.reserve(raw, bytes, { isRefusable: false });
