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
  STALLED_MS,
  TAKEN_CHARACTERS,
  WRITE_CHARACTERS,
} from "./event-sink.ts";

/** Interval of comments that keep a stream alive. SDKs take twice this for a dead stream. */
const HEARTBEAT_MS = 5_000;
/**
 * No blank line: after an `id:`, decoders of Python and of SDKs up to 2.0 turn a blank line into an event
 * without data, and its readers crash.
 */
const HEARTBEAT = ": heartbeat\n";

/** A single `data:` line: several SDKs join lines without a line break, and throw at an empty one. */
const toFrame = ({ seq, event, data, before = "", after = "" }: SentEvent): string =>
  `id: ${seq}\nevent: ${event}\ndata: ${before}${data}${after}\n\n`;

/** Bounded pieces, because written text stays in memory until the client reads it. */
function* toWrites(events: readonly SentEvent[], selection: EventSelection): Generator<string, void> {
  let frames = "";
  for (const event of events) {
    if (!isSelected(event.event, selection)) continue;
    if (event.data.length > WRITE_CHARACTERS) {
      const { before = "", after = "" } = event;
      yield `${frames}id: ${event.seq}\nevent: ${event.event}\ndata: ${before}`;
      yield* inPieces(event.data);
      frames = `${after}\n\n`;
    } else frames += toFrame(event);
    if (frames.length < WRITE_CHARACTERS) continue;
    yield frames;
    frames = "";
  }
  if (frames !== "") yield frames;
}

const EVENT_STREAM = "text/event-stream";
const STREAM_HEADERS = {
  "content-type": EVENT_STREAM,
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/** How events become bytes. */
export interface StreamForm {
  /** Undefined: server-sent events. */
  contentType?: string;
  /** Of `WRITE_CHARACTERS` at most, about. */
  writesOf(events: readonly SentEvent[]): Iterable<string | Uint8Array>;
}

class DroppedError extends Error {
  constructor() {
    super("The client was cut off; it may resume.");
    this.name = "DroppedError";
  }
}

export const wasDropped = ({ raw }: FastifyReply): boolean => raw.errored instanceof DroppedError;

export const createEventStream = (reply: FastifyReply, selection: EventSelection): EventSink =>
  createStream(reply, { writesOf: (events) => toWrites(events, selection) });

export const createStream = (
  reply: FastifyReply,
  { contentType = EVENT_STREAM, writesOf }: StreamForm,
): EventSink => {
  const { raw } = reply;
  const isEventStream = contentType === EVENT_STREAM;
  // An application around the API may process the response first. `reply.sse` sends only server-sent events.
  const piped = reply.request.isWrapped === true || !isEventStream ? new PassThrough() : undefined;
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

  /**
   * True if the socket stalls. Also ends when the socket closes; `send()` of @fastify/sse would wait for
   * ever.
   */
  const waitForDrain = async (until: number): Promise<boolean> => {
    const stalled = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(true), Math.max(0, until - performance.now()));
      drained = () => {
        clearTimeout(timer);
        resolve(false);
      };
      if (gone) drained();
    });
    drained = undefined;
    return stalled;
  };

  return {
    get isGone() {
      return gone;
    },
    onGone(listener) {
      left = listener;
    },
    open() {
      // Clients wait for the headers. An event that is ready goes in the same packet.
      if (piped !== undefined)
        void reply.headers({ ...STREAM_HEADERS, "content-type": contentType }).send(piped);
      else {
        reply.sse.sendHeaders();
        flush = setImmediate(() => raw.flushHeaders());
      }
      // Only between frames: a full socket is in the middle of a frame.
      if (isEventStream)
        heartbeat = setInterval(() => socket.writableNeedDrain || socket.write(HEARTBEAT), HEARTBEAT_MS);
    },
    async write(events) {
      let since = performance.now();
      let given = 0;
      for (const text of writesOf(events)) {
        if (given > TAKEN_CHARACTERS) {
          given = 0;
          since = performance.now();
        }
        given += text.length;
        if (socket.write(text)) continue;
        const stalled = await waitForDrain(since + STALLED_MS);
        if (gone) return "gone";
        if (stalled) return "stalled";
      }
      return "taken";
    },
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
