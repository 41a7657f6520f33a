import type { FastifyReply } from "fastify";
import type { RunEvent } from "../log.ts";
import type { RunReader } from "../readers/channel-reader.ts";
import { deliver, type DeliveryEnd, type EventSink } from "./event-sink.ts";

/** A reader whose socket takes nothing for this long is dropped: it holds memory and learns nothing. */
const STALLED_MS = 60_000;

/** Time between the comments that keep a stream alive; SDKs take two of them as the measure of silence. */
const HEARTBEAT_MS = 5_000;
/**
 * One line, and no blank line behind it: where an `id:` was seen before, the decoders of the SDKs up to 2.0 and of
 * Python's make an event without data of a blank line, and code that reads its data crashes.
 */
const HEARTBEAT = ": heartbeat\n";

const WRITE_CHARACTERS = 64 * 1024;
/** A reader has to take so many characters within STALLED_MS; whoever takes them by drops holds memory, too. */
const TAKEN_CHARACTERS = 1024 * 1024;

const ALWAYS_SENT = new Set(["metadata", "error"]);

/**
 * One event as it goes over the wire. Data are one line: several SDKs join `data:` lines without a line break, and
 * an empty one makes them throw.
 */
export const toFrame = ({ seq, event, data }: RunEvent): string =>
  `id: ${seq}\nevent: ${event}\ndata: ${data}\n\n`;

/** A text in pieces; none ends between the halves of a surrogate pair, which would be written as two others. */
function* inPieces(text: string): Generator<string, void> {
  for (let start = 0; start < text.length;) {
    let end = start + WRITE_CHARACTERS;
    const last = text.charCodeAt(end - 1);
    if (last >= 0xd800 && last <= 0xdbff) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

/**
 * Frames in pieces of bounded size: what is written waits in this reader's own memory until its client takes it. The
 * data of a large event are cut from the text that all its readers share.
 */
function* toWrites(
  events: readonly RunEvent[],
  modes: ReadonlySet<string> | undefined,
): Generator<string, void> {
  let frames = "";
  for (const event of events) {
    if (!matchesModes(event.event, modes)) continue;
    if (event.data.length > WRITE_CHARACTERS) {
      const frame = toFrame({ ...event, data: "" });
      yield frames + frame.trimEnd() + " ";
      yield* inPieces(event.data);
      frames = "\n\n";
    } else frames += toFrame(event);
    if (frames.length < WRITE_CHARACTERS) continue;
    yield frames;
    frames = "";
  }
  if (frames !== "") yield frames;
}

/** Which events a join asked for: `updates` also means `updates|namespace`. */
export const matchesModes = (event: string, modes: ReadonlySet<string> | undefined): boolean => {
  if (modes === undefined) return true;
  const end = event.search(/[|/]/);
  const prefix = end === -1 ? event : event.slice(0, end);
  return (
    modes.has(prefix) || ALWAYS_SENT.has(prefix) || (prefix === "messages" && modes.has("messages-tuple"))
  );
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

export interface StreamOptions {
  /** Event names to pass on, by their part before `|`; all if undefined. */
  modes?: ReadonlySet<string>;
}

/** Server-sent events over the response to a request; its route must be registered with `sse: "manual"`. */
export const createEventStream = (reply: FastifyReply, { modes }: StreamOptions): EventSink => {
  const socket = reply.raw;
  let gone = socket.destroyed;
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
  socket.on("close", onClose);
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
      reply.sse.sendHeaders();
      flush = setImmediate(() => socket.flushHeaders());
      // Only between whole frames: in the middle of one the socket is full, and has other signs of life to deliver.
      heartbeat = setInterval(() => socket.writableNeedDrain || socket.write(HEARTBEAT), HEARTBEAT_MS);
    },
    async write(events) {
      let since = performance.now();
      let given = 0;
      for (const text of toWrites(events, modes)) {
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
      socket.destroy(new DroppedError());
    },
    close() {
      clearImmediate(flush);
      clearInterval(heartbeat);
      socket.off("close", onClose);
      socket.off("drain", onDrain);
    },
  };
};

/**
 * Sends a run's events to a client until the run ends or the client goes. Resolves to how it came to an end.
 *
 * A run's end closes the response cleanly. Everything else destroys the socket, because clients take a clean end
 * for the end of the run and would not come back.
 */
export const sendRunEvents = async (
  reply: FastifyReply,
  reader: RunReader,
  options: StreamOptions = {},
): Promise<DeliveryEnd> =>
  await deliver(reader, createEventStream(reply, options), (error) => {
    reply.log.error({ err: error }, "a stream was cut off: its events could not be sent");
  });
