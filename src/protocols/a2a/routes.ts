import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { answerPatiently } from "../../api/runs/joining/patient-answer.ts";
import { deliver } from "../../engine/events/transports/event-sink.ts";
import { createEventStream } from "../../engine/events/transports/server-sent-events.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import { callerGone } from "../../http/caller-gone.ts";
import { publicAddress } from "../../http/public-address.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { CallerGoneError, ThreadloomError } from "../../platform/domain/errors.ts";
import { storableText } from "../../platform/domain/json-schemas.ts";
import type { AgentRequest, Version } from "./request.ts";
import type { A2aService } from "./service.ts";
import type { Answered, RpcAnswer, Transports } from "./transports.ts";

const agentPath = z.object({
  assistant_id: storableText.describe("The assistant's id, or a graph id for the graph's system assistant."),
});
const agentQuery = z.object({
  assistant_id: storableText.min(1).describe("The assistant's id, or a graph id."),
});
/** The package validates messages. */
const rpcBody = z.unknown().describe("A request of JSON-RPC 2.0.");
const response = {
  200: z.unknown().describe("As the A2A protocol says; server-sent events for streams."),
};
const tags = ["A2A"];
const PARSE_ERROR = -32700;

const STARTS: ReadonlySet<unknown> = new Set([
  ...["SendMessage", "SendStreamingMessage"],
  ...["message/send", "message/stream"],
]);
const STREAMS: ReadonlySet<unknown> = new Set([
  ...["SendStreamingMessage", "SubscribeToTask"],
  ...["message/stream", "tasks/resubscribe"],
]);

/** A request without a version speaks 0.3. */
const versionOf = ({ headers }: FastifyRequest): { version: Version } | { unknown: string } => {
  const { "a2a-version": asked } = headers;
  const text = asked === undefined || asked === "" ? "0.3" : String(asked);
  const [, version] = /^(0\.3|1\.0)(?:\.\d+)?$/.exec(text) ?? [];
  return version === undefined ? { unknown: text } : { version: version as Version };
};

const agentRequest = (
  request: FastifyRequest,
  reply: FastifyReply,
  assistantId: string,
  rest: Pick<AgentRequest, "signal" | "onAccepted">,
): AgentRequest => ({
  caller: request.caller,
  assistantId,
  address: () => publicAddress(request.headers) + request.server.mountPrefix,
  headers: request.configurableHeaders(),
  ...rest,
});

interface LateAnswer {
  transports: Transports;
  body: unknown;
  ended: Promise<Answered>;
}

/** Answers after the run has been stored: from then on, an error can't be a status. */
const answerLate = (reply: FastifyReply, { transports, body, ended }: LateAnswer): FastifyReply => {
  const write = (answer: RpcAnswer): string => JSON.stringify(answer);
  const text = ended.then(
    (late) => ("answer" in late ? write(late.answer) : ""),
    (error: unknown) => {
      if (error instanceof CallerGoneError) throw error;
      const refusal = transports.refuseLate(body, error);
      if (refusal.isFault) reply.log.error({ err: error }, "a task failed after its answer had started");
      return write(refusal.answer);
    },
  );
  return answerPatiently(reply, text);
};

/** Assistants as agents of the A2A protocol, over JSON-RPC. */
export const createA2aRoutes =
  (service: A2aService): RoutePlugin =>
  async (app) => {
    const sendCard = async (
      request: FastifyRequest,
      reply: FastifyReply,
      assistantId: string,
    ): Promise<FastifyReply> => {
      const transports = await service.transports();
      const asked = versionOf(request);
      const rest = { signal: callerGone(reply.raw), onAccepted: () => undefined };
      const version = "unknown" in asked ? "1.0" : asked.version;
      const card = await transports.card(version, agentRequest(request, reply, assistantId, rest));
      return reply.header("vary", "A2A-Version").send(card);
    };
    const summary = "Get the A2A card of an assistant";
    app.get(
      "/.well-known/agent-card.json",
      { schema: { tags, summary, querystring: agentQuery, response } },
      async (request, reply) => await sendCard(request, reply, request.query.assistant_id),
    );
    app.get(
      "/a2a/:assistant_id/.well-known/agent-card.json",
      { schema: { tags, summary, params: agentPath, response } },
      async (request, reply) => await sendCard(request, reply, request.params.assistant_id),
    );

    const serve = async (
      request: FastifyRequest,
      reply: FastifyReply,
      assistantId: string,
    ): Promise<FastifyReply | undefined> => {
      const { body } = request;
      const transports = await service.transports();
      const asked = versionOf(request);
      if ("unknown" in asked) return reply.send(transports.refuseVersion(body, asked.unknown));
      const method = (body as { method?: unknown } | null | undefined)?.method;
      if (STARTS.has(method)) request.spend("runs");
      let run: RunSelector | undefined;
      const access = request.holdAccess(async (caller) => {
        if (run !== undefined) await service.assertStill(caller, run);
      });
      let accept: (value: "accepted") => void = () => undefined;
      const accepted = new Promise<"accepted">((resolve) => (accept = resolve));
      const onAccepted = (selector: RunSelector): void => {
        run = selector;
        request.releaseBody();
        accept("accepted");
      };
      const signal = callerGone(reply.raw, access.signal);
      const answered = transports.call(
        asked.version,
        body,
        agentRequest(request, reply, assistantId, { signal, onAccepted }),
      );
      let isLate = false;
      try {
        const first = await (STREAMS.has(method) ? answered : Promise.race([answered, accepted]));
        if (first === "accepted") {
          isLate = true;
          const lost = new Promise<never>((_resolve, reject) => {
            const lose = (): void => reject(access.signal.reason as Error);
            access.signal.addEventListener("abort", lose);
            if (access.signal.aborted) lose();
          });
          const ended = Promise.race([answered, lost]).finally(() => access.release());
          return answerLate(reply, { transports, body, ended });
        }
        if ("answer" in first) return reply.send(first.answer);
        const onFault = (error: unknown): void =>
          request.log.error({ err: error }, "the stream of a task was cut off: its events could not be sent");
        await deliver(first.reader, createEventStream(reply, {}), onFault, access);
        return undefined;
      } finally {
        if (!isLate) access.release();
      }
    };
    app.post(
      "/a2a/:assistant_id",
      {
        config: { largeBody: true, rate: "reads" },
        sse: "manual",
        errorHandler(error, _request, reply) {
          if (!(error instanceof ThreadloomError) || error.kind !== "malformed") throw error;
          return (reply as FastifyReply)
            .code(400)
            .send({ jsonrpc: "2.0", id: null, error: { code: PARSE_ERROR, message: error.message } });
        },
        schema: {
          tags,
          summary: "Call an assistant over A2A's JSON-RPC",
          description: "The header A2A-Version says the dialect: 0.3 (also without the header) or 1.0.",
          params: agentPath,
          body: rpcBody,
          response,
        },
      },
      async (request, reply) => await serve(request, reply, request.params.assistant_id),
    );
  };
