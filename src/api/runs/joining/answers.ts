import type { HeldAccess } from "../../../access/reauthorization.ts";
import type { Caller } from "../../../access/caller.ts";
import type { FastifyInstance, FastifyReply } from "fastify";
import { callerGone } from "../../../http/caller-gone.ts";
import type { RunReader } from "../../../engine/events/channel.ts";
import { lossOf } from "../../../engine/events/transports/event-sink.ts";
import { sendRunEvents, wasDropped } from "../../../engine/events/transports/server-sent-events.ts";
import { answerPatiently } from "./patient-answer.ts";
import { toRunRecord } from "../record.ts";
import type { RunSelector } from "../repository.ts";
import type { CreatedRun, ResultReadOptions } from "./results.ts";
import type { RunRecord } from "../schemas.ts";
import type { JoiningService } from "./service.ts";

type OnDisconnect = "cancel" | "continue";

const selectorOf = ({ row }: CreatedRun): RunSelector => ({ threadId: row.thread_id, runId: row.run_id });
const runAddress = ({ server }: FastifyReply, { threadId, runId }: RunSelector): string =>
  `${server.mountPrefix}/threads/${threadId}/runs/${runId}`;

/** `checkpointId`: see JoiningService. */
interface Asked {
  modes?: string[] | undefined;
  namespaces: string[] | undefined;
  after: number | undefined;
  checkpointId?: string | undefined;
}

const holdFor = ({ request }: FastifyReply, selector: RunSelector, joining: JoiningService): HeldAccess =>
  request.holdAccess(async (caller) => await joining.assertStill(caller, selector));

const sendEvents = async (
  reply: FastifyReply,
  selector: RunSelector,
  reader: RunReader,
  joining: JoiningService,
  { modes, namespaces, after, checkpointId }: Asked,
): Promise<Awaited<ReturnType<typeof sendRunEvents>>> => {
  // A client that disconnects before its first event has no Last-Event-ID, so `Location` carries the parameters.
  const parameters = new URLSearchParams();
  for (const mode of modes ?? []) parameters.append("stream_mode", mode);
  for (const namespace of namespaces ?? []) parameters.append("namespace", namespace);
  if (after !== undefined) parameters.set("last_event_id", String(after));
  if (checkpointId !== undefined) parameters.set("checkpoint_id", checkpointId);
  const query = parameters.toString();
  void reply.headers({
    "content-location": runAddress(reply, selector),
    location: `${runAddress(reply, selector)}/stream${query === "" ? "" : `?${query}`}`,
  });
  const access = holdFor(reply, selector, joining);
  try {
    return await sendRunEvents(reply, reader, { modes: modes && new Set(modes), namespaces }, access);
  } finally {
    access.release();
  }
};

interface CancelsRuns {
  abandon(created: CreatedRun): Promise<void>;
  cancel(caller: Caller, selector: RunSelector, how: typeof LEFT, wait: undefined): Promise<void>;
}

const LEFT = { action: "interrupt", reason: "disconnected" } as const;

export const createRunAnswers = (
  app: Pick<FastifyInstance, "addHook">,
  { joining, cancellation }: { joining: JoiningService; cancellation: CancelsRuns },
) => {
  let stopping = false;
  app.addHook("preClose", (done) => {
    stopping = true;
    done();
  });

  /** Not called if the server closes the connection. */
  const endOnDisconnect = (reply: FastifyReply, runId: string, end: () => Promise<void>): void => {
    const onClose = (): void => {
      if (stopping || reply.raw.writableFinished || wasDropped(reply)) return;
      end().catch((error: unknown) => {
        reply.log.debug({ err: error, run_id: runId }, "nothing to cancel after a client left");
      });
    };
    // The client may have disconnected while the run was being stored.
    if (reply.raw.destroyed) onClose();
    else reply.raw.once("close", onClose);
  };

  const abandonOnDisconnect = (reply: FastifyReply, created: CreatedRun): void =>
    endOnDisconnect(reply, created.row.run_id, () => cancellation.abandon(created));

  /** Cancels with the caller's rights, because a reader may not be allowed to cancel. */
  const cancelOnDisconnect = (reply: FastifyReply, selector: RunSelector): void =>
    endOnDisconnect(reply, selector.runId, () =>
      cancellation.cancel(reply.request.caller, selector, LEFT, undefined),
    );

  const sendResult = (
    reply: FastifyReply,
    selector: RunSelector,
    result: (options: ResultReadOptions) => Promise<string>,
  ): FastifyReply => {
    void reply.headers({
      "content-location": runAddress(reply, selector),
      location: `${runAddress(reply, selector)}/join`,
    });
    const access = holdFor(reply, selector, joining);
    const lost = new Promise<string>((resolve) =>
      access.signal.addEventListener("abort", () =>
        resolve(JSON.stringify({ __error__: lossOf(access.signal.reason) })),
      ),
    );
    const joined = result({ signal: callerGone(reply.raw, access.signal), caller: reply.request.caller });
    const answer = Promise.race([joined, lost]).finally(() => access.release());
    return answerPatiently(reply, answer);
  };

  return {
    created(reply: FastifyReply, created: CreatedRun): RunRecord {
      void reply.header("content-location", runAddress(reply, selectorOf(created)));
      return toRunRecord(created.row);
    },

    wait(reply: FastifyReply, created: CreatedRun, onDisconnect: OnDisconnect): FastifyReply {
      if (onDisconnect === "cancel") abandonOnDisconnect(reply, created);
      return sendResult(
        reply,
        selectorOf(created),
        async (options) => (await joining.result(created, options)).text,
      );
    },

    join(reply: FastifyReply, selector: RunSelector, onDisconnect: OnDisconnect): FastifyReply {
      if (onDisconnect === "cancel") cancelOnDisconnect(reply, selector);
      const { caller } = reply.request;
      return sendResult(
        reply,
        selector,
        async (options) => (await joining.join(caller, selector, options)).text,
      );
    },

    async stream(
      reply: FastifyReply,
      created: CreatedRun,
      { namespaces, onDisconnect }: { namespaces: string[] | undefined; onDisconnect: OnDisconnect },
    ): Promise<void> {
      const selector = selectorOf(created);
      const reader = joining.readCreated(reply.request.caller, created);
      if (onDisconnect === "cancel") abandonOnDisconnect(reply, created);
      const end = await sendEvents(reply, selector, reader, joining, { namespaces, after: -1 });
      if (end === "ended") await joining.forget(created);
    },

    async joinStream(
      reply: FastifyReply,
      selector: RunSelector,
      reader: RunReader,
      { onDisconnect, ...asked }: Asked & { onDisconnect: OnDisconnect },
    ): Promise<void> {
      if (onDisconnect === "cancel") cancelOnDisconnect(reply, selector);
      await sendEvents(reply, selector, reader, joining, asked);
    },
  };
};

export type RunAnswers = ReturnType<typeof createRunAnswers>;
