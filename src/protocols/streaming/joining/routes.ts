import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { invalid } from "../../../platform/domain/errors.ts";
import { errorAnswer } from "../../../platform/domain/json-schemas.ts";
import { deliver } from "../../../engine/events/transports/event-sink.ts";
import { closingEvent } from "../../../engine/events/transports/closing-event.ts";
import { createEventStream } from "../../../engine/events/transports/server-sent-events.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { threadPath } from "../schemas.ts";
import {
  THREAD_STREAM_MODES,
  threadStreamHeaders,
  threadStreamQuery,
  type ThreadStreamMode,
} from "./schemas.ts";
import type { ThreadStreamService } from "./service.ts";

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
