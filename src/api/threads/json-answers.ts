import type { FastifyReply } from "fastify";

export const NO_CONTENT = 204;

export const sendJson = (reply: FastifyReply, text: string): FastifyReply =>
  reply.type("application/json; charset=utf-8").send(text);
