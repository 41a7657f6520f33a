import type { FastifyReply } from "fastify";
import type { HeldAccess } from "../../../access/reauthorization.ts";
import { isSelected, type EventSelection } from "../selection.ts";
import { PassThrough, type Writable } from "node:stream";
import { deliver, type DeliveryEnd, type EventReader, type EventSink, type SentEvent } from "./event-sink.ts";
import { closingEvent } from "./closing-event.ts";
import { inPieces, STALLED_MS, TAKEN_CHARACTERS, WRITE_CHARACTERS } from "./backpressure.ts";

/** Time between the comments that keep a stream alive; SDKs take two of them as the measure of silence. */
const HEARTBEAT_MS = 5_000;
/**
 * One line, and no blank line behind it: where an `id:` was seen before, the decoders of the SDKs up to 2.0 and of
 * Python's make an event without data of a blank line, and code that reads its data crashes.
 */
const HEARTBEAT = ": heartbeat\n";

/**
 * One event as it goes over the wire. Data are one line: several SDKs join `data:` lines without a line break, and
 * an empty one makes them throw.
 */
export const toFrame = ({ seq, event, data, before = "", after = "" }: SentEvent): string =>
  `id: ${seq}\nevent: ${event}\ndata: ${before}${data}${after}\n\n`;

/**
 * Frames in pieces of bounded size: what is written waits in this reader's own memory until its client takes it. The
 * data of a large event are cut from the text that all its readers share.
 */
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

/** What @fastify/sse sends. */
const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/** What a socket is destroyed with when it is the server that cuts the client off. */
class DroppedError extends Error {
  constructor() {
    super("The client was cut off; it may resume.");
    this.name = "DroppedError";
  }
}

/** Whether a client's connection was cut by `sendRunEvents`: it did not leave by itself. */
export const wasDropped = ({ raw }: FastifyReply): boolean => raw.errored instanceof DroppedError;

/** Server-sent events over the response to a request; its route must be registered with `sse: "manual"`. */
export const createEventStream = (reply: FastifyReply, selection: EventSelection): EventSink => {
  const { raw } = reply;
  // Around the API there may be an application that has the answer before the client.
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
  // It was not wanted: something else is answered.
  piped?.on("close", onClose).on("error", onClose);
  socket.on("drain", onDrain);

  /** Waits for the socket, or for its end (@fastify/sse's own send() waits for ever then). True if it stalls. */
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
      // Also before the first event, for clients wait for the headers; but with it, in one packet, if it is there.
      if (piped !== undefined) void reply.headers(STREAM_HEADERS).send(piped);
      else {
        reply.sse.sendHeaders();
        flush = setImmediate(() => raw.flushHeaders());
      }
      // Only between whole frames: in the middle of one the socket is full, and has other signs of life to deliver.
      heartbeat = setInterval(() => socket.writableNeedDrain || socket.write(HEARTBEAT), HEARTBEAT_MS);
    },
    async write(events) {
      let since = performance.now();
      let given = 0;
      for (const text of toWrites(events, selection)) {
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
 * Sends a run's events to a client until the run ends, the client goes, or access is lost. Resolves to how it came to an end.
 *
 * A run's end closes the response cleanly, as does the event that tells of a loss. Everything else destroys the socket, because clients take a clean end
 * for the end of the run and would not come back.
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
