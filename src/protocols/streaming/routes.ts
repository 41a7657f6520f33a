import { z } from "zod";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import { closingEvent, deliver } from "../../engine/events/transports/event-sink.ts";
import { shareSocket } from "../../engine/events/transports/websocket.ts";
import { createEventStream } from "../../engine/events/transports/server-sent-events.ts";
import { createBodyRoom } from "../../http/bodies.ts";
import { callerGone } from "../../http/caller-gone.ts";
import { answerUnknownRoute, refusalOf } from "../../http/errors.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { validated } from "../../http/validation.ts";
import {
  commandAnswer,
  commandEnvelope,
  eventStreamBody,
  THREAD_STREAM_MODES,
  threadPath,
  threadStreamHeaders,
  threadStreamQuery,
  type ThreadStreamMode,
} from "./schemas.ts";
import { createsRun, isForHttp } from "./commands.ts";
import { mergeReaders } from "./reading/merged-reader.ts";
import type { StreamingService } from "./service.ts";
import { serveSession } from "./sockets/session.ts";
import type { FastifyRequest } from "fastify";
import { invalid } from "../../platform/domain/errors.ts";
import type { ThreadStreamService } from "./joining.ts";

const tags = ["Event streaming"];

/** The close code is this number plus the HTTP status. */
const REFUSED = 4_000;

/** `elementsAtMost`: JSON elements of a socket's message. */
export const createStreamingRoutes =
  (service: StreamingService, elementsAtMost: number): RoutePlugin =>
  async (app) => {
    app.post(
      "/threads/:thread_id/commands",
      {
        config: { largeBody: true, rate: "reads" },
        schema: {
          tags,
          summary: "Send a command: start a run, answer an interrupt, or read a thread",
          description: "The answer holds the result. Its status is 200 even if the command was refused.",
          params: threadPath,
          body: commandEnvelope,
          response: { 200: commandAnswer, 404: errorAnswer },
        },
      },
      async (request, reply) => {
        if (createsRun(request.body)) request.spend("runs");
        return await service.command(
          {
            caller: request.caller,
            threadId: request.params.thread_id,
            headers: request.configurableHeaders(),
            onFault: (error) =>
              request.log.error(
                { err: error, method: request.body.method, thread_id: request.params.thread_id },
                "a command failed",
              ),
            signal: callerGone(reply.raw),
          },
          request.body,
          isForHttp,
        );
      },
    );

    app.post(
      "/threads/:thread_id/stream/events",
      {
        config: { isRead: true },
        sse: "manual",
        schema: {
          tags,
          summary: "Stream the events of a thread over its runs",
          description:
            "Stays open between runs, and may be opened before the thread exists. The stream never ends by itself: a client that is cut off reconnects with the 'seq' of the last event as 'since'.",
          params: threadPath,
          body: eventStreamBody,
          response: { 200: z.string().describe("Server-sent events.") },
        },
      },
      async (request, reply) => {
        const { "last-event-id": id = "" } = request.headers;
        const since = request.body.since ?? (/^\d{1,16}$/.test(String(id)) ? Number(id) : undefined);
        const readAccess = await service.reading.openAccess(request.caller, request.params.thread_id);
        const reader = await service.reading.read(
          readAccess,
          { ...request.body, since },
          {
            hasFlushed: () => reply.raw.writableLength === 0,
            userAgent: request.headers["user-agent"],
          },
        );
        request.releaseBody();
        const merged = mergeReaders();
        merged.add(reader);
        const onFault = (error: unknown): void =>
          request.log.error(
            { err: error, thread_id: request.params.thread_id },
            "a stream was cut off: the events of its thread could not be sent",
          );
        // This wire has no event for lost access: the client reconnects and gets a status.
        const access = request.holdAccess((caller) => readAccess.reauthorize(caller));
        await deliver(merged, createEventStream(reply, {}), onFault, access).finally(access.release);
      },
    );

    const bodies = createBodyRoom();
    app.route({
      method: "GET",
      url: "/threads/:thread_id/stream/events",
      config: { webSocket: true },
      schema: { hide: true },
      handler: (request, reply) => answerUnknownRoute(request, reply),
      // Browsers hide the HTTP status from the page, so errors are codes of the socket.
      wsHandler: async (socket, request) => {
        const onFault = (error: unknown): void =>
          request.log.error({ err: error, thread_id: threadId }, "a WebSocket of event streaming failed");
        let threadId: string | undefined;
        try {
          ({ thread_id: threadId } = validated(threadPath, request.params, "The path"));
          const readAccess = await service.reading.openAccess(request.caller, threadId);
          serveSession(socket, {
            connection: request.raw.socket,
            service,
            holdAccess: (ask) => request.holdAccess(ask),
            readAccess,
            headers: request.configurableHeaders(),
            elementsAtMost,
            bodies,
            spend: (envelope) => request.spend(createsRun(envelope) ? "runs" : "reads"),
            openStream: () => request.openStream(),
            onFault,
          });
        } catch (error) {
          const { status, detail } = refusalOf(error) ?? {
            status: 500,
            detail: "The server's log says why.",
          };
          if (status === 500) onFault(error);
          shareSocket(socket).refuse(REFUSED + status, detail);
        }
      },
    });
  };

/** `-` (published contract) and `-1` (as for a run) mean all kept events. */
const lastEventId = (request: FastifyRequest, named: number | undefined): number | undefined => {
  const header = request.headers["last-event-id"];
  if (typeof header !== "string" || header === "") return named;
  if (header === "-" || header === "-1") return 0;
  if (!/^\d{1,16}$/.test(header)) throw invalid("'Last-Event-ID' must be the id of an event, or -.");
  return Number(header);
};

const modesOf = ({
  stream_modes,
  stream_mode,
}: z.output<typeof threadStreamQuery>): Set<ThreadStreamMode> => {
  const asked = new Set([...(stream_modes ?? []), ...(stream_mode ?? [])]);
  if (asked.size === 0) return new Set(["run_modes"]);
  return new Set(THREAD_STREAM_MODES.filter((mode) => asked.has(mode)));
};

export const createThreadStreamRoutes =
  (service: ThreadStreamService): RoutePlugin =>
  async (app) => {
    app.get(
      "/threads/:thread_id/stream",
      {
        sse: "manual",
        schema: {
          tags: ["Threads"],
          summary: "Stream a thread over its runs",
          description:
            "Stays open until the client disconnects, also between runs. Event ids rise over all runs of the thread. With 'Last-Event-ID' the stream continues after that event, else it begins now.",
          params: threadPath,
          querystring: threadStreamQuery,
          headers: threadStreamHeaders,
          response: { 200: z.string().describe("Server-sent events."), 404: errorAnswer },
        },
      },
      async (request, reply) => {
        const { thread_id: threadId } = request.params;
        const modes = modesOf(request.query);
        const after = lastEventId(request, request.query.last_event_id);
        const { reader, from, readAccess } = await service.read(request.caller, threadId, modes, after);
        const query = new URLSearchParams([...modes].map((mode): [string, string] => ["stream_mode", mode]));
        query.set("last_event_id", String(from));
        void reply.header(
          "location",
          `${reply.server.mountPrefix}/threads/${threadId}/stream?${query.toString()}`,
        );
        const onFault = (error: unknown): void =>
          request.log.error(
            { err: error },
            "the stream of a thread was cut off: its events could not be sent",
          );
        const access = request.holdAccess((caller) => readAccess.reauthorize(caller));
        try {
          const { signal } = access;
          await deliver(reader, createEventStream(reply, {}), onFault, { signal, closingEvent });
        } finally {
          access.release();
        }
      },
    );
  };
