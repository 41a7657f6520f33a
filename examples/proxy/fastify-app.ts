import httpProxy from "@fastify/http-proxy";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { agentToken, sessionOf } from "./agent-token.ts";

/** Admits signed-in users, and replaces their cookie by a token for the agent server. */
const authorize = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
  if (request.headers["sec-fetch-site"] === "cross-site")
    return reply.code(403).send({ detail: "Pages of other sites may not call this." });
  const session = sessionOf(request.headers.cookie);
  if (session === undefined) return reply.code(401).send({ detail: "Sign in first." });
  // The agent server must not get the browser's credentials: they are for this application.
  for (const name of ["cookie", "origin", "x-api-key"]) delete request.headers[name];
  request.headers.authorization = `Bearer ${await agentToken(session)}`;
  return undefined;
};

/** `/agents` is the API of the agent server at `target`. */
export const createApp = async (target: string): Promise<FastifyInstance> => {
  const app = Fastify();
  await app.register(httpProxy, { upstream: target, prefix: "/agents", preHandler: authorize });
  return app;
};
