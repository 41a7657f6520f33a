import { EventType } from "@ag-ui/core";
import type { FastifyReply } from "fastify";
import { WRITE_CHARACTERS, inPieces } from "../../engine/events/transports/backpressure.ts";
import { lossOf } from "../../engine/events/transports/closing-event.ts";
import type { DeliveryAccess, EventSink, SentEvent } from "../../engine/events/transports/event-sink.ts";
import { createStream } from "../../engine/events/transports/server-sent-events.ts";

/** Only `data:`, as the protocol's own encoder writes. */
function* asServerSentEvents(events: readonly SentEvent[]): Generator<string> {
  let frames = "";
  for (const { data } of events) {
    if (data.length > WRITE_CHARACTERS) {
      yield `${frames}data: `;
      yield* inPieces(data);
      frames = "\n\n";
    } else frames += `data: ${data}\n\n`;
    if (frames.length < WRITE_CHARACTERS) continue;
    yield frames;
    frames = "";
  }
  if (frames !== "") yield frames;
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += WRITE_CHARACTERS)
    yield bytes.subarray(start, start + WRITE_CHARACTERS);
}

const MEDIA_TYPE = "application/vnd.ag-ui.event+proto";

/** The form that the client accepts: server-sent events, or the protocol's binary form if it is named. */
export const createAgUiStream = async (reply: FastifyReply): Promise<EventSink> => {
  const { accept } = reply.request.headers;
  if (accept?.includes(MEDIA_TYPE) !== true) return createStream(reply, { writesOf: asServerSentEvents });
  const { EventEncoder } = await import("@ag-ui/encoder");
  const encoder = new EventEncoder({ accept });
  if (encoder.getContentType() !== MEDIA_TYPE) return createStream(reply, { writesOf: asServerSentEvents });
  return createStream(reply, {
    contentType: MEDIA_TYPE,
    *writesOf(events) {
      for (const { data } of events) yield* pieces(encoder.encodeBinary(JSON.parse(data) as never));
    },
  });
};

/** Sent to a client that loses its access while the stream is open. */
export const closingEvent: NonNullable<DeliveryAccess["closingEvent"]> = (reason) => {
  const { error: code, message } = lossOf(reason);
  const event = { type: EventType.RUN_ERROR, message, code };
  return { seq: 0, event: event.type, data: JSON.stringify(event) };
};
