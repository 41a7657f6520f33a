import { EventType } from "@ag-ui/core";
import { deliver, type DeliveryAccess, lossOf } from "../../engine/events/transports/event-sink.ts";
import { createEventStream } from "../../engine/events/transports/server-sent-events.ts";
import { z } from "zod";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import { callerGone } from "../../http/caller-gone.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { agentInput, agentPath, cancelBody, type AgentInput } from "./schemas.ts";
import { sentEvent } from "./reader.ts";
import type { AgUiService } from "./service.ts";

/** Sent to a client that loses its access while the stream is open. */
const closingEvent: NonNullable<DeliveryAccess["closingEvent"]> = (reason) => {
  const { error: code, message } = lossOf(reason);
  return sentEvent(0, { type: EventType.RUN_ERROR, message, code });
};

const tags = ["AG-UI"];

/** By the names of the SDK and of the API. */
const cancelsOnDisconnect = ({ forwardedProps: props }: AgentInput): boolean =>
  typeof props === "object" &&
  props !== null &&
  (("onDisconnect" in props && props.onDisconnect === "cancel") ||
    ("on_disconnect" in props && props.on_disconnect === "cancel"));

export const createAgUiRoutes =
  (service: AgUiService): RoutePlugin =>
  async (app) => {
    let isStopping = false;
    app.addHook("preClose", (done) => {
      isStopping = true;
      done();
    });

    app.post(
      "/agui/:assistant_id",
      {
        config: { largeBody: true, rate: "reads" },
        sse: "manual",
        schema: {
          tags,
          summary: "Run an assistant for an AG-UI front end",
          description:
            "Starts a run, joins the run in progress, or shows the thread. The answer is a stream of AG-UI events. A client that disconnects leaves the run running.",
          params: agentPath,
          body: agentInput,
          response: { 200: z.string().describe("Events of AG-UI."), 404: errorAnswer },
        },
      },
      async (request, reply) => {
        const { caller, body } = request;
        const cancels = cancelsOnDisconnect(body);
        const opened = await service.open(
          {
            caller,
            assistantId: request.params.assistant_id,
            headers: request.configurableHeaders(),
            countUnread: (bytes) => void reply.countUnread(bytes),
            signal: callerGone(reply.raw),
            spend: () => request.spend("runs"),
          },
          body,
        );
        const { reader, selector, created } = opened;
        try {
          request.releaseBody();
          if (selector !== undefined)
            void reply.header(
              "content-location",
              `${app.mountPrefix}/threads/${selector.threadId}/runs/${selector.runId}`,
            );
          const access = selector && request.holdAccess((holder) => service.assertStill(holder, selector));
          const onFault = (error: unknown): void =>
            request.log.error({ err: error, run_id: selector?.runId }, "a stream of AG-UI was cut off");
          const end = await deliver(
            reader,
            createEventStream(reply, {}),
            onFault,
            access && { signal: access.signal, closingEvent },
          ).finally(() => access?.release());
          if (end !== "disconnected" || !cancels || created === undefined || isStopping) return;
          await service.abandon(created).catch((error: unknown) => {
            request.log.debug(
              { err: error, run_id: created.row.run_id },
              "nothing to cancel after a client left",
            );
          });
        } finally {
          reader.close();
        }
      },
    );

    app.post(
      "/agui/:assistant_id/cancel",
      {
        schema: {
          tags,
          summary: "Cancel a run by the thread and the run id of the AG-UI client",
          params: agentPath,
          body: cancelBody,
          response: { 204: z.null().describe("Asked to stop."), 404: errorAnswer },
        },
      },
      async (request, reply) => {
        const { threadId, runId } = request.body;
        await service.cancel(request.caller, threadId, runId);
        return await reply.code(204).send(null);
      },
    );
  };
