import { AgentCard } from "@a2a-js/sdk";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import { JsonRpcTransportHandler, ServerCallContext } from "@a2a-js/sdk/server";
import { LegacyJsonRpcTransportHandler, LegacyRestTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import {
  A2AError,
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from "@a2a-js/sdk/errors";
import { isLossOfAccess } from "../../access/auth/refusals.ts";
import { type EventReader, lossOf, type SentEvent } from "../../engine/events/transports/event-sink.ts";
import { ThreadloomError } from "../../platform/domain/errors.ts";
import type { CallService } from "../calls/service.ts";
import { createAgents } from "./agent.ts";
import type { CardParts } from "./card.ts";
import type { PushParts } from "./pushes.ts";
import { StreamLostError, type AgentRequest, type Version } from "./request.ts";

const INTERNAL_ERROR = -32603;
const INVALID_PARAMS = -32602;

/** An answer of JSON-RPC. */
export interface RpcAnswer {
  jsonrpc: string;
  id: string | number | null;
  result?: unknown;
  error?: unknown;
}

/** `reader`: of a stream. */
export type Answered = { answer: RpcAnswer } | { reader: EventReader };

/** Undefined for an error that is no answer of the protocol: the server's own errors, limits and missing rights. */
const toA2aError = (error: unknown): A2AError | undefined => {
  if (error instanceof A2AError) return error;
  if (!(error instanceof ThreadloomError)) return undefined;
  switch (error.kind) {
    case "not_found":
      return error.missing === "assistant" || error.missing === "graph"
        ? undefined
        : new TaskNotFoundError("There is no such task.");
    case "invalid":
    case "malformed":
      return new RequestMalformedError(error.message);
    case "conflict":
      return new UnsupportedOperationError(error.message);
    default:
      return undefined;
  }
};

/** Throws A2A's errors. `onFault` gets each error that the package must not describe to the client. */
const translated = (handler: A2ARequestHandler, onFault: (error: unknown) => void): A2ARequestHandler => {
  const translate = (error: unknown): unknown => {
    const known = toA2aError(error);
    if (known === undefined) onFault(error);
    return known ?? error;
  };
  async function* each<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
    try {
      yield* items;
    } catch (error) {
      throw translate(error);
    }
  }
  const methods = Object.entries(handler).map(([name, method]) => [
    name,
    (...parameters: unknown[]): unknown => {
      const made = (method as (...all: unknown[]) => object).apply(handler, parameters);
      if (Symbol.asyncIterator in made) return each(made as AsyncGenerator<unknown>);
      return (made as Promise<unknown>).catch((error: unknown) => {
        throw translate(error);
      });
    },
  ]);
  return Object.fromEntries(methods) as A2ARequestHandler;
};

const idIn = (body: unknown): RpcAnswer["id"] => {
  const { id } = (body ?? {}) as Partial<RpcAnswer>;
  return typeof id === "string" || typeof id === "number" ? id : null;
};

/** The package failed at parameters of a wrong type before it called an agent. */
const readable = (answer: RpcAnswer): RpcAnswer =>
  (answer.error as { code?: unknown } | undefined)?.code === INTERNAL_ERROR
    ? { ...answer, error: { code: INVALID_PARAMS, message: "The parameters can't be read." } }
    : answer;

/** The package would not wait for a message of 0.3 without `blocking`; the hosted service and other servers do. */
const waitingByDefault = (body: unknown): unknown => {
  const { method, params } = (body ?? {}) as {
    method?: unknown;
    params?: { configuration?: unknown } | null;
  };
  const { configuration } = params ?? {};
  if (method !== "message/send" || typeof configuration !== "object" || configuration === null) return body;
  return { ...(body as object), params: { ...params, configuration: { blocking: true, ...configuration } } };
};

const transportOf = (version: Version) =>
  version === "0.3"
    ? { open: LegacyJsonRpcTransportHandler, toError: LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError }
    : { open: JsonRpcTransportHandler, toError: JsonRpcTransportHandler.mapToJSONRPCError };

/** The package's transports over the agents of this server. */
export const createTransports = (
  calls: CallService,
  { push, ...cardParts }: Pick<CardParts, "security"> & { push: PushParts | undefined },
) => {
  const agents = createAgents(calls, cardParts, push);

  async function* eventsOf(
    first: IteratorResult<RpcAnswer, unknown>,
    items: AsyncIterator<RpcAnswer, unknown>,
    refused: (error: unknown) => RpcAnswer,
    signal: AbortSignal,
  ): AsyncGenerator<SentEvent[], "ended" | "lost"> {
    let seq = 0;
    const sent = (answer: RpcAnswer): SentEvent[] => [
      { seq: (seq += 1), event: "message", data: JSON.stringify(answer) },
    ];
    try {
      for (let item = first; item.done !== true; item = await items.next()) yield sent(item.value);
    } catch (error) {
      if (signal.aborted) return "ended";
      if (error instanceof StreamLostError) return "lost";
      yield sent(refused(error));
    }
    return "ended";
  }

  return {
    /** The answer to a request of JSON-RPC. Throws errors that are no answer of the protocol. */
    async call(version: Version, body: unknown, request: AgentRequest): Promise<Answered> {
      let fault: { error: unknown } | undefined;
      const handler = translated(agents.handlerOf(request, version), (error) => (fault ??= { error }));
      const { open: Transport, toError } = transportOf(version);
      const refused = (error: unknown): RpcAnswer => {
        if (fault !== undefined) throw fault.error;
        if (!(error instanceof A2AError)) throw error;
        return { jsonrpc: "2.0", id: idIn(body), error: toError(error) };
      };
      const answer = await new Transport(handler).handle(
        (version === "0.3" ? waitingByDefault(body) : body) as Record<string, unknown>,
        new ServerCallContext({ requestedVersion: version }),
      );
      if (fault !== undefined) throw fault.error;
      if (!(Symbol.asyncIterator in answer)) return { answer: readable(answer) };
      const items = answer[Symbol.asyncIterator]();
      try {
        const events = eventsOf(await items.next(), items, refused, request.signal);
        const close = (): void => void items.return?.().catch(() => undefined);
        return { reader: { next: async () => (await events.next()).value, close } };
      } catch (error) {
        return { answer: refused(error) };
      }
    },

    /** The answer to a request whose version no transport speaks. */
    refuseVersion(body: unknown, asked: string): RpcAnswer {
      const error = new VersionNotSupportedError(
        `A2A ${asked.slice(0, 20)} is not supported; the versions are 0.3 and 1.0.`,
      );
      return { jsonrpc: "2.0", id: idIn(body), error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
    },

    /** For a client without a version both dialects in one card, as the package serves it. */
    async card(version: Version, request: AgentRequest): Promise<unknown> {
      const handler = agents.handlerOf(request, version);
      const card = await handler.getAuthenticatedExtendedAgentCard({ tenant: "" }, new ServerCallContext());
      const current = AgentCard.toJSON(card) as object;
      if (version === "1.0") return current;
      const legacy = new LegacyRestTransportHandler({
        ...handler,
        getAuthenticatedExtendedAgentCard: async () => card,
      });
      const { supportedInterfaces } = card;
      return {
        ...(await legacy.getAuthenticatedExtendedAgentCard(new ServerCallContext())),
        supportedInterfaces,
      };
    },

    /** For a client that has a status of success already. `isFault`: for the log. */
    refuseLate(body: unknown, error: unknown): { answer: RpcAnswer; isFault: boolean } {
      const isFault = !isLossOfAccess(error);
      const message = isFault
        ? "The server could not answer this request; its log says why."
        : lossOf(error).message;
      const answer = { jsonrpc: "2.0", id: idIn(body), error: { code: INTERNAL_ERROR, message } };
      return { answer, isFault };
    },
  };
};

export type Transports = ReturnType<typeof createTransports>;
