import type { FastifyReply } from "fastify";
import type { HeldAccess } from "../../../access/reauthorization.ts";
import { isSelected, type EventSelection } from "../selection.ts";
import { PassThrough, type Writable } from "node:stream";
import {
  closingEvent,
  deliver,
  type DeliveryEnd,
  type EventReader,
  type EventSink,
  inPieces,
  type SentEvent,
  WRITE_CHARACTERS,
  writePieces,
} from "./event-sink.ts";

/** Interval of comments that keep a stream alive. SDKs take twice this for a dead stream. */
const HEARTBEAT_MS = 5_000;
/**
 * No blank line: after an `id:`, decoders of Python and of SDKs up to 2.0 turn a blank line into an event
 * without data, and its readers crash.
 */
const HEARTBEAT = ": heartbeat\n";

/**
 * Bounded pieces, because written text stays in memory until the client reads it. A single `data:` line: several SDKs join
 * lines without a line break, and throw at an empty one.
 */
function* framesOf(events: readonly SentEvent[], selection: EventSelection): Generator<string, void> {
  let frames = "";
  for (const event of events) {
    if (!isSelected(event.event, selection)) continue;
    const { before = "", data, after = "" } = event;
    frames += `id: ${event.seq}\nevent: ${event.event}\ndata: ${before}`;
    if (data.length > WRITE_CHARACTERS) {
      yield frames;
      yield* inPieces(data);
      frames = "";
    } else frames += data;
    frames += `${after}\n\n`;
    if (frames.length < WRITE_CHARACTERS) continue;
    yield frames;
    frames = "";
  }
  if (frames !== "") yield frames;
}

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

class DroppedError extends Error {
  constructor() {
    super("The client was cut off; it may resume.");
    this.name = "DroppedError";
  }
}

export const wasDropped = ({ raw }: FastifyReply): boolean => raw.errored instanceof DroppedError;

export const createEventStream = (reply: FastifyReply, selection: EventSelection): EventSink => {
  const { raw } = reply;
  // An application around the API may process the response first.
  const piped = reply.request.isWrapped === true ? new PassThrough() : undefined;
  const socket: Writable = piped ?? raw;
  let gone = raw.destroyed;
  let left: (() => void) | undefined;
  let drained: (() => void) | undefined;
  let flush: NodeJS.Immediate | undefined;
  let heartbeat: NodeJS.Timeout | undefined;
  const onClose = (): void => {
    gone = true;
    left?.();
    drained?.();
  };
  const onDrain = (): void => drained?.();
  raw.on("close", onClose);
  // The application discarded the response.
  piped?.on("close", onClose).on("error", onClose);
  socket.on("drain", onDrain);

  /** Also resolves when the socket closes; `send()` of @fastify/sse would wait for ever. */
  const untilDrained = (): Promise<void> =>
    new Promise<void>((resolve) => {
      drained = resolve;
      if (gone) resolve();
    });

  return {
    get isGone() {
      return gone;
    },
    onGone(listener) {
      left = listener;
    },
    open() {
      // Clients wait for the headers. An event that is ready goes in the same packet.
      if (piped !== undefined) void reply.headers(STREAM_HEADERS).send(piped);
      else {
        reply.sse.sendHeaders();
        flush = setImmediate(() => raw.flushHeaders());
      }
      // Only between frames: a full socket is in the middle of a frame.
      heartbeat = setInterval(() => socket.writableNeedDrain || socket.write(HEARTBEAT), HEARTBEAT_MS);
    },
    write: (events) =>
      writePieces(
        framesOf(events, selection),
        (text) => (socket.write(text) ? undefined : untilDrained()),
        () => gone,
      ),
    drop() {
      raw.destroy(new DroppedError());
    },
    close() {
      clearImmediate(flush);
      clearInterval(heartbeat);
      raw.off("close", onClose);
      socket.off("drain", onDrain);
      piped?.off("close", onClose).end();
    },
  };
};

/**
 * Only the run's end and a closing event end the response cleanly. Otherwise the socket is destroyed, because
 * clients take a clean end for the end of the run.
 */
export const sendRunEvents = async (
  reply: FastifyReply,
  reader: EventReader,
  selection: EventSelection = {},
  access?: Pick<HeldAccess, "signal">,
): Promise<DeliveryEnd> =>
  await deliver(
    reader,
    createEventStream(reply, selection),
    (error) => reply.log.error({ err: error }, "a stream was cut off: its events could not be sent"),
    access && { signal: access.signal, closingEvent },
  );
