import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { HeldAccess, Reauthorize } from "../../../access/reauthorization.ts";
import { deliver } from "../../../engine/events/transports/event-sink.ts";
import { createSocketSink, shareSocket } from "../../../engine/events/transports/websocket.ts";
import { isLargeBody, parseBody } from "../../../http/bodies.ts";
import { LARGE_ANSWER_BYTES } from "../../../http/large-answers.ts";
import type { Room } from "../../../http/room.ts";
import { refusalOf as refusalOfRequest } from "../../../http/errors.ts";
import { validated } from "../../../http/validation.ts";
import { CallerGoneError } from "../../../platform/domain/errors.ts";
import { newId } from "../../../platform/lib/ids.ts";
import { outsideTraces } from "../../../platform/telemetry/telemetry.ts";
import { CommandError, refusalOf } from "../commands.ts";
import { mergeReaders } from "../reading/merged-reader.ts";
import type { StreamingService } from "../service.ts";
import type { ReadAccess } from "../repository.ts";
import {
  commandEnvelope,
  eventStreamBody,
  unsubscribeParams,
  type CommandAnswer,
  type CommandEnvelope,
} from "../schemas.ts";

export interface SessionParts {
  /** Below the WebSocket. */
  connection: Duplex;
  service: StreamingService;
  /** Until the socket closes. */
  holdAccess: (ask: Reauthorize) => HeldAccess;
  /** For the socket; each subscription has its own. */
  readAccess: ReadAccess;
  headers: Readonly<Record<string, string>> | undefined;
  elementsAtMost: number;
  /** For large messages. */
  bodies: Room;
  /** Counts a command; throws `tooMany`. */
  spend: (envelope: CommandEnvelope) => void;
  /** Counts a subscription until the returned function is called; throws `tooMany`. */
  openStream: () => () => void;
  onFault: (error: unknown) => void;
}

/** As in both SDKs. */
const PING_EVERY_MS = 20_000;
/** A client has a minute for a message, as for the body of a request. */
const CHECKS_OF_MESSAGE = 3;
/** Around the content of a client's ping or pong. */
const CONTROL_FRAME_BYTES = 6;
/** RFC 6455: policy violation. */
const POLICY_VIOLATION = 1_008;
const SUBSCRIPTIONS_AT_MOST = 100;

/** For a message without a valid command. */
interface Unreadable extends Omit<Extract<CommandAnswer, { type: "error" }>, "id"> {
  id: null;
}

/** Ends a socket whose client answers no ping, or does not finish a message: its parts stay in memory. */
const attend = (socket: WebSocket, connection: Duplex): void => {
  let isAlive = true;
  /** Of an unfinished message. */
  let bytes = 0;
  let checks = 0;
  // Before the listener of ws, which emits the messages in these bytes.
  connection.prependListener("data", ({ length }: Buffer) => (bytes += length));
  socket.on("message", () => (bytes = checks = 0));
  // They may come between the parts of a message.
  const onControl = ({ length }: Buffer): void => {
    bytes = Math.max(0, bytes - length - CONTROL_FRAME_BYTES);
  };
  socket.on("ping", onControl);
  socket.on("pong", (data) => {
    isAlive = true;
    onControl(data);
  });
  const timer = setInterval(() => {
    // A paused socket reads no pong.
    if (socket.isPaused) {
      isAlive = true;
      return;
    }
    checks = bytes === 0 ? 0 : checks + 1;
    if (!isAlive || checks > CHECKS_OF_MESSAGE) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, PING_EVERY_MS);
  socket.once("close", () => clearInterval(timer));
};

/** Answers commands one after the other. */
export const serveSession = (socket: WebSocket, parts: SessionParts): void => {
  const { service, headers, elementsAtMost, bodies, spend, onFault } = parts;
  const { threadId } = parts.readAccess;
  const shared = shareSocket(socket);
  const subscriptions = new Map<string, { readAccess: ReadAccess; end: () => void }>();
  const access = parts.holdAccess(async (caller) => {
    await parts.readAccess.reauthorize(caller);
    for (const { readAccess } of subscriptions.values()) await readAccess.reauthorize(caller);
  });
  const gone = new AbortController();
  socket.once("close", () => gone.abort(new CallerGoneError()));
  let busy: Promise<void> = Promise.resolve();
  /** Received messages without an answer. */
  let waiting = 0;
  // A short run could end between the first subscription and the next.
  const merged = mergeReaders(() => (waiting > 0 ? busy : undefined));

  /** While too much is unread, the next large state is not read. */
  const answer = async (message: CommandAnswer | Unreadable): Promise<void> => {
    const data = JSON.stringify(message);
    const taken =
      data.length < LARGE_ANSWER_BYTES ? undefined : service.readRoom.unread(access.caller, data.length);
    if ((await shared.send({ data })) === "stalled") shared.drop();
    taken?.();
  };

  const subscribe = async ({ id, params }: CommandEnvelope): Promise<void> => {
    if (subscriptions.size >= SUBSCRIPTIONS_AT_MOST) {
      throw new CommandError(
        "invalid_argument",
        `A socket has at most ${SUBSCRIPTIONS_AT_MOST} subscriptions.`,
      );
    }
    const request = validated(eventStreamBody, params, "The params");
    const readAccess = await service.reading.openAccess(access.caller, threadId);
    const reader = await service.reading.read(readAccess, request, {
      hasFlushed: () => socket.bufferedAmount === 0,
      onClose: parts.openStream(),
    });
    const subscriptionId = newId();
    // `merged` sends no event before the answer.
    subscriptions.set(subscriptionId, { readAccess, end: merged.add(reader) });
    await answer({
      type: "success",
      id,
      result: { subscription_id: subscriptionId },
      meta: { thread_id: threadId },
    });
  };

  const unsubscribe = async ({ id, params }: CommandEnvelope): Promise<void> => {
    const { subscription_id: subscriptionId } = validated(unsubscribeParams, params, "The params");
    const subscription = subscriptions.get(subscriptionId);
    if (subscription === undefined) {
      throw new CommandError("no_such_subscription", `There is no subscription '${subscriptionId}'.`);
    }
    subscription.end();
    subscriptions.delete(subscriptionId);
    await answer({ type: "success", id, result: {}, meta: { thread_id: threadId } });
  };

  const perform = async (envelope: CommandEnvelope): Promise<void> => {
    try {
      spend(envelope);
      if (envelope.method === "subscription.subscribe") return await subscribe(envelope);
      if (envelope.method === "subscription.unsubscribe") return await unsubscribe(envelope);
    } catch (error) {
      return await answer(refusalOf(envelope.id, error, onFault));
    }
    const sender = { caller: access.caller, threadId, headers, onFault, signal: gone.signal };
    await answer(await service.command(sender, envelope));
  };

  const receive = async (received: Buffer): Promise<void> => {
    const leave = isLargeBody(received.length) ? await bodies.enter(access.caller, gone.signal) : undefined;
    try {
      // The socket may have closed during the wait.
      if (shared.isGone) return;
      let envelope: CommandEnvelope;
      try {
        envelope = validated(commandEnvelope, parseBody(String(received), elementsAtMost), "The message");
      } catch (error) {
        // An unreadable message is never the server's fault.
        const { message } = error as Error;
        return await answer({ type: "error", id: null, error: "invalid_argument", message });
      }
      await perform(envelope);
    } finally {
      leave?.();
    }
  };

  const onMessage = (data: unknown, isBinary: boolean): void => {
    // A paused socket still emits the rest of its chunk. Resuming after each answer would read another chunk of a
    // thousand messages.
    socket.pause();
    waiting += 1;
    const received = isBinary ? Buffer.alloc(0) : (data as Buffer);
    busy = busy
      .then(() => (shared.isGone ? undefined : receive(received)))
      .catch((error: unknown) => {
        if (error instanceof CallerGoneError) return;
        onFault(error);
        shared.drop();
      })
      .finally(() => {
        waiting -= 1;
        if (waiting === 0) socket.resume();
      });
  };
  // A socket may be open for days, so runs that its commands start are traces of their own: also the first command, which
  // may arrive with the request.
  socket.on("message", (data, isBinary) => outsideTraces(() => onMessage(data, isBinary)));
  const refuse = (reason: unknown): void =>
    shared.refuse(POLICY_VIOLATION, refusalOfRequest(reason)?.detail ?? "Access could not be checked.");
  void deliver(merged, createSocketSink(shared), onFault, { refuse });
  attend(socket, parts.connection);
  access.signal.addEventListener("abort", () => refuse(access.signal.reason));
  socket.once("close", () => access.release());
  socket.once(
    "close",
    service.addSocket(() => busy),
  );
};
