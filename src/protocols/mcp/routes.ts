import { addressFor, publicAddress, type Headers } from "../../http/public-address.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { answerPatiently } from "../../api/runs/joining/patient-answer.ts";
import { callerGone } from "../../http/caller-gone.ts";
import { attended, LARGE_ANSWER_BYTES } from "../../http/large-answers.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import { ownField } from "../../platform/lib/names.ts";
import { countRuns, staysOpen, type Exchange, type MessageRequest } from "./exchange.ts";
import type { McpService } from "./service.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
/** Both places of RFC 9728: behind the resource's path, and for the whole server. */
const METADATA_PATHS = [WELL_KNOWN, `${WELL_KNOWN}/mcp`] as const;

/** RFC 9728: who issues the tokens for this resource. */
const resourceMetadata = (
  headers: Headers,
  mountPrefix: string,
  authorizationServers: readonly string[],
): object => ({
  resource: `${publicAddress(headers)}${mountPrefix}/mcp`,
  authorization_servers: authorizationServers,
  bearer_methods_supported: ["header"],
});

/** For `WWW-Authenticate`; undefined if the request names no host. */
const challengeOf = (headers: Headers, mountPrefix: string): string | undefined => {
  if (addressFor(headers) === undefined) return undefined;
  return `Bearer resource_metadata="${publicAddress(headers)}${mountPrefix}${WELL_KNOWN}/mcp"`;
};

const tags = ["MCP"];

/** A client that takes nothing for this time is disconnected. */
const STALLED_MS = 60_000;

/** Each part of a waiting answer listens for its end; Node would report more than ten as a leak. */
const LISTENERS_AT_MOST = 30;

/** What clients without an opinion accept. */
const ACCEPT = "application/json, text/event-stream";

const messageRequest = ({ headers }: FastifyRequest, signal: AbortSignal): MessageRequest => {
  const acceptsAny = (headers.accept ?? "*/*").includes("*/*");
  return {
    method: "POST",
    signal,
    headers: {
      get(name) {
        const key = name.toLowerCase();
        if (key === "accept" && acceptsAny) return ACCEPT;
        return ownField(headers, key)?.toString() ?? null;
      },
    },
  };
};

type Body = ReadableStreamDefaultReader<Uint8Array>;
type Chunk = Awaited<ReturnType<Body["read"]>>;

async function* textsOf(body: Body, first: Promise<Chunk>, reply: FastifyReply): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  try {
    for (let { done, value } = await first; !done; { done, value } = await body.read()) {
      if (value === undefined) continue;
      if (value.length >= LARGE_ANSWER_BYTES) reply.countUnread(value.length);
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    // Ends the exchange of a client that has left.
    await body.cancel().catch(() => undefined);
  }
}

/** The begin of an answer: its run is stored, or the error that refuses the request. */
type Head = "begun" | { failure: unknown };

const sendStream = async (
  reply: FastifyReply,
  { status, headers, body: stream }: Response,
  head: Promise<Head>,
): Promise<FastifyReply> => {
  const body = stream!.getReader() as Body;
  const first = body.read();
  const begun = await Promise.race([head, first]);
  if (begun !== "begun" && "failure" in begun) {
    await body.cancel().catch(() => undefined);
    throw begun.failure;
  }
  void reply.code(status).headers(Object.fromEntries(headers));
  const texts = textsOf(body, first, reply);
  return reply.send(attended(reply.raw, texts, { stalledMs: STALLED_MS }));
};

const send = async (
  reply: FastifyReply,
  answer: Promise<Response>,
  head: Promise<Head>,
): Promise<FastifyReply> => {
  const first = await Promise.race([head, answer]);
  if (first === "begun")
    return answerPatiently(
      reply,
      answer.then((late) => late.text()),
    );
  if ("failure" in first) throw first.failure;
  if (reply.raw.destroyed) return reply.hijack();
  const { status, headers } = first;
  if (headers.get("content-type") === "text/event-stream") return await sendStream(reply, first, head);
  const json = await first.text();
  return await reply.code(status).headers(Object.fromEntries(headers)).send(json);
};

export const createMcpRoutes =
  (service: McpService): RoutePlugin =>
  async (app) => {
    let stopping = false;
    app.addHook("preClose", (done) => {
      stopping = true;
      done();
    });

    const exchangeOf = (
      request: FastifyRequest,
      reply: FastifyReply,
      settle: (head: Head) => boolean,
    ): Exchange => ({
      caller: request.caller,
      headers: request.configurableHeaders(),
      holdAccess: (ask) => request.holdAccess(ask),
      signal: callerGone(reply.raw),
      onLeave(listener) {
        const onClose = (): void => {
          if (!stopping && !reply.raw.writableFinished) listener();
        };
        if (reply.raw.destroyed) onClose();
        else reply.raw.once("close", onClose);
      },
      isTaken: () => !reply.raw.writableNeedDrain,
      begin() {
        request.releaseBody();
        settle("begun");
      },
      // A batch may have other answers.
      refuse: (failure) => !Array.isArray(request.body) && settle({ failure }),
      onFault: (err, what) => request.log.error({ err }, what),
    });

    app.post(
      "/mcp",
      {
        config: { largeBody: true, rate: "reads" },
        schema: {
          tags,
          summary: "Send a message of the Model Context Protocol",
          description: "Each assistant is a tool. The server keeps no sessions.",
          body: z.any().describe("A request or a notification of JSON-RPC 2.0."),
          response: {
            200: z.any().describe("The answer, as JSON or as server-sent events."),
            202: z.any().describe("A notification was accepted."),
            400: z.any().describe("The message is not valid, or of an unknown revision."),
          },
        },
      },
      async (request, reply) => {
        const { body } = request;
        reply.raw.setMaxListeners(LISTENERS_AT_MOST);
        for (let runs = countRuns(body); runs > 0; runs -= 1) request.spend("runs");
        if (staysOpen(body)) reply.raw.once("close", request.openStream());
        const answerMessage = await service.answering();
        let settled = false;
        let resolve: (head: Head) => void;
        const head = new Promise<Head>((settle) => (resolve = settle));
        const settle = (how: Head): boolean => {
          if (settled) return false;
          settled = true;
          resolve(how);
          return true;
        };
        const exchange = exchangeOf(request, reply, settle);
        const answer = answerMessage(exchange, messageRequest(request, exchange.signal), body ?? null);
        return await send(reply, answer, head);
      },
    );

    app.get(
      "/mcp",
      {
        schema: {
          tags,
          summary: "Open a stream of the server's messages: there is none",
          response: { 405: errorAnswer },
        },
      },
      async (_request, reply) =>
        await reply.code(405).header("allow", "POST").send({ detail: "Send messages with POST." }),
    );

    app.delete(
      "/mcp",
      { schema: { tags, summary: "End a session: there are none", response: { 404: errorAnswer } } },
      async (_request, reply) => await reply.code(404).send({ detail: "There are no sessions to end." }),
    );

    // The printed description of the API has no service, and must not list these routes.
    if (!(service.authorizationServers.length > 0)) return;
    app.addHook("onSend", (request, reply, _payload, done) => {
      const challenge = reply.statusCode === 401 ? challengeOf(request.headers, app.mountPrefix) : undefined;
      if (challenge !== undefined) reply.header("www-authenticate", challenge);
      done();
    });
    for (const path of METADATA_PATHS) {
      app.get(
        path,
        {
          schema: {
            tags,
            summary: "Get the issuers of tokens for the Model Context Protocol (RFC 9728)",
            security: [],
            response: { 200: z.any() },
          },
        },
        async (request) => resourceMetadata(request.headers, app.mountPrefix, service.authorizationServers),
      );
    }
  };
