import httpProxy from "@fastify/http-proxy";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { agentToken, sessionOf } from "./agent-token.ts";

/** Lets in who has signed in here, and tells the agent server who that is. */
const authorize = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
  if (request.headers["sec-fetch-site"] === "cross-site")
    return reply.code(403).send({ detail: "Pages of other sites may not call this." });
  const session = sessionOf(request.headers.cookie);
  if (session === undefined) return reply.code(401).send({ detail: "Sign in first." });
  // The browser's own are for this application: the agent server gets none of them.
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
