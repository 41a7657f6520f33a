import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { invalid } from "../../../platform/domain/errors.ts";
import type { RoutePlugin } from "../../../http/route-plugin.ts";
import { events, refusals, tags, threadlessTags, values } from "../descriptions.ts";
import type { RunSelector } from "../repository.ts";
import { bareRunPath, joinQuery, joinStreamHeaders, joinStreamQuery, runPath } from "../schemas.ts";
import type { RunAnswers } from "./answers.ts";
import type { JoiningService } from "./service.ts";

/** -1: all events. Without an event, a client uses the parameter in `Location`. */
const lastEventId = (request: FastifyRequest, named: number | undefined): number | undefined => {
  const header = request.headers["last-event-id"];
  if (typeof header !== "string" || header === "") return named;
  if (!/^-?\d{1,15}$/.test(header)) throw invalid("'Last-Event-ID' must be the id of an event, or -1.");
  return Number(header);
};

const onDisconnectOf = ({ cancel_on_disconnect: cancels }: z.output<typeof joinQuery>) =>
  cancels ? "cancel" : "continue";

export const createJoiningRoutes =
  (service: JoiningService, answers: RunAnswers): RoutePlugin =>
  async (app) => {
    app.get(
      "/threads/:thread_id/runs/:run_id/join",
      {
        config: { waits: true },
        schema: {
          tags,
          summary: "Wait until a run has ended",
          params: runPath,
          querystring: joinQuery,
          response: { 200: values, ...refusals },
        },
      },
      async (request, reply) => {
        const selector = { threadId: request.params.thread_id, runId: request.params.run_id };
        await service.assertExists(request.caller, selector); // A missing run must be a 404 before the 200 is sent.
        return answers.join(reply, selector, onDisconnectOf(request.query));
      },
    );

    const joinStream = async (
      request: FastifyRequest,
      reply: FastifyReply,
      selector: RunSelector,
      query: z.output<typeof joinStreamQuery>,
    ): Promise<void> => {
      const after = lastEventId(request, query.last_event_id);
      const { stream_mode: modes, namespace: namespaces, checkpoint_id: checkpointId } = query;
      const reader = await service.read(request.caller, selector, { after, checkpointId });
      const onDisconnect = onDisconnectOf(query);
      const asked = { modes, namespaces, after, checkpointId };
      await answers.joinStream(reply, selector, reader, { ...asked, onDisconnect });
    };

    const streamSchema = {
      querystring: joinStreamQuery,
      headers: joinStreamHeaders,
      response: { 200: events, ...refusals },
    };
    app.get(
      "/threads/:thread_id/runs/:run_id/stream",
      {
        sse: "manual",
        schema: { tags, summary: "Stream an existing run", params: runPath, ...streamSchema },
      },
      async (request, reply) =>
        await joinStream(
          request,
          reply,
          { threadId: request.params.thread_id, runId: request.params.run_id },
          request.query,
        ),
    );

    app.get(
      "/runs/:run_id/stream",
      {
        sse: "manual",
        schema: {
          tags: threadlessTags,
          summary: "Stream a run by its id alone",
          params: bareRunPath,
          ...streamSchema,
        },
      },
      async (request, reply) =>
        await joinStream(
          request,
          reply,
          await service.locate(request.caller, request.params.run_id),
          request.query,
        ),
    );
  };
