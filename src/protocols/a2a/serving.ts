import type { FastifyReply, FastifyRequest } from "fastify";
import { answerPatiently } from "../../api/runs/joining/patient-answer.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import { deliver } from "../../engine/events/transports/event-sink.ts";
import { createEventStream } from "../../engine/events/transports/server-sent-events.ts";
import { callerGone } from "../../http/caller-gone.ts";
import { publicAddress } from "../../http/public-address.ts";
import { CallerGoneError } from "../../platform/domain/errors.ts";
import type { AgentRequest, Version } from "./request.ts";
import type { A2aService } from "./service.ts";
import type { Answered, RpcAnswer, Transports } from "./transports.ts";

const REST_TYPE = "application/a2a+json";

const STARTS: ReadonlySet<unknown> = new Set([
  ...["SendMessage", "SendStreamingMessage"],
  ...["message/send", "message/stream"],
]);
const STREAMS: ReadonlySet<unknown> = new Set([
  ...["SendStreamingMessage", "SubscribeToTask"],
  ...["message/stream", "tasks/resubscribe"],
]);

const methodOf = (body: unknown): unknown => (body as { method?: unknown } | null | undefined)?.method;

const versionOf = (
  { headers }: FastifyRequest,
  fallback: Version,
): { version: Version } | { unknown: string } => {
  const { "a2a-version": asked } = headers;
  const text = asked === undefined || asked === "" ? fallback : String(asked);
  const [, version] = /^(0\.3|1\.0)(?:\.\d+)?$/.exec(text) ?? [];
  return version === undefined ? { unknown: text } : { version: version as Version };
};

/** The binding of a request: how it asks, and how it is answered. */
export interface Binding {
  write: (transports: Transports, answer: RpcAnswer) => unknown;
  send: (transports: Transports, reply: FastifyReply, answer: RpcAnswer) => FastifyReply;
}

export const RPC: Binding = {
  write: (_transports, answered) => answered,
  send: (_transports, reply, answered) => reply.send(answered),
};

export const REST: Binding = {
  write: (transports, answered) => transports.restRefusalOf(answered)?.body ?? answered.result,
  send(transports, reply, answered) {
    const refusal = transports.restRefusalOf(answered);
    void reply.type(REST_TYPE);
    return refusal === undefined
      ? reply.send(answered.result)
      : reply.code(refusal.status).send(refusal.body);
  },
};

export const createServing = (service: A2aService) => {
  const agentRequest = (
    request: FastifyRequest,
    reply: FastifyReply,
    assistantId: string,
    rest: Pick<AgentRequest, "signal" | "onAccepted">,
  ): AgentRequest => ({
    ...{
      caller: request.caller,
      assistantId,
      address: () => publicAddress(request.headers) + request.server.mountPrefix,
    },
    ...{ headers: request.configurableHeaders(), budget: reply.budget(), ...rest },
  });

  /** Answers after the run has been stored: from then on, an error can't be a status. */
  const answerLate = (
    reply: FastifyReply,
    binding: Binding,
    { transports, body, ended }: LateAnswer,
  ): FastifyReply => {
    const write = (late: RpcAnswer): string => JSON.stringify(binding.write(transports, late));
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

  return {
    async sendCard(request: FastifyRequest, reply: FastifyReply, assistantId: string): Promise<FastifyReply> {
      const transports = await service.transports();
      const asked = versionOf(request, "0.3");
      const rest = { signal: callerGone(reply.raw), onAccepted: () => undefined };
      const version = "unknown" in asked ? "1.0" : asked.version;
      const card = await transports.card(version, agentRequest(request, reply, assistantId, rest));
      return reply.header("vary", "A2A-Version").send(card);
    },

    /** Answers a request of JSON-RPC, or of REST in its form. */
    async serve(
      request: FastifyRequest,
      reply: FastifyReply,
      { assistantId, body, binding }: { assistantId: string; body: unknown; binding: Binding },
    ): Promise<FastifyReply | undefined> {
      const transports = await service.transports();
      const asked = versionOf(request, binding === RPC ? "0.3" : "1.0");
      if ("unknown" in asked || (binding === REST && asked.version !== "1.0")) {
        const version = "unknown" in asked ? asked.unknown : asked.version;
        return binding.send(transports, reply, transports.refuseVersion(body, version));
      }
      const method = methodOf(body);
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
      const agent = agentRequest(request, reply, assistantId, { signal, onAccepted });
      const answered = transports.call(
        { version: asked.version, body, write: (each) => binding.write(transports, each) },
        agent,
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
          return answerLate(reply, binding, { transports, body, ended });
        }
        if ("answer" in first) return binding.send(transports, reply, first.answer);
        const onFault = (error: unknown): void =>
          request.log.error({ err: error }, "the stream of a task was cut off: its events could not be sent");
        await deliver(first.reader, createEventStream(reply, {}), onFault, access);
        return undefined;
      } finally {
        if (!isLate) access.release();
      }
    },
  };
};

interface LateAnswer {
  transports: Transports;
  body: unknown;
  ended: Promise<Answered>;
}

export type Serving = ReturnType<typeof createServing>;
