import type { FastifyReply } from "fastify";
import { Readable } from "node:stream";

type Payload = string | Buffer | Readable | ReadableStream | null | undefined;

const isEmpty = (status: number): boolean => status === 204 || status === 205 || status === 304;

const headersOf = (reply: FastifyReply): Headers => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) headers.append(name, String(one));
    }
  }
  return headers;
};

const lazily = (payload: NonNullable<Payload>, onRead: () => void): ReadableStream => {
  let pieces: AsyncIterator<unknown> | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        onRead();
        if (typeof payload === "string" || Buffer.isBuffer(payload)) {
          controller.enqueue(typeof payload === "string" ? new TextEncoder().encode(payload) : payload);
          return controller.close();
        }
        pieces ??= (payload as AsyncIterable<unknown>)[Symbol.asyncIterator]();
        const { done, value } = await pieces.next();
        if (done === true) return controller.close();
        controller.enqueue(typeof value === "string" ? new TextEncoder().encode(value) : value);
      },
      async cancel() {
        onRead();
        discard(payload);
      },
    },
    { highWaterMark: 0 },
  );
};

const discard = (payload: Payload): void => {
  if (payload instanceof Readable) payload.destroy();
};

/** The body is untouched unless the application reads it. */
export const toApiResponse = (reply: FastifyReply, payload: Payload) => {
  const { statusCode: status } = reply;
  let isRead = false;
  const hasBody = payload !== null && payload !== undefined && payload !== "" && !isEmpty(status);
  const body = hasBody ? lazily(payload, () => (isRead = true)) : null;
  return {
    response: new Response(body, { status, headers: headersOf(reply) }),
    /** Whether this is the response's own, unread body. */
    isOwn: (given: ReadableStream | null): boolean => given === body && !isRead && body?.locked !== true,
    discard: (): void => {
      if (!isRead) discard(payload);
    },
  };
};

/** @throws if it is no response */
export const asResponse = (returned: unknown): Response => {
  const { status, headers } = (returned ?? {}) as Partial<Response>;
  // Duck-typed: an application may have another `Response` class.
  if (typeof status === "number" && status >= 200 && status < 600 && typeof headers?.forEach === "function")
    return returned as Response;
  throw new TypeError("the application of http.app did not answer with a Response");
};

/** Removes the reply's other headers unless `adds`. */
export const adoptHead = (
  reply: FastifyReply,
  { status, headers }: Response,
  { adds }: { adds: boolean },
): void => {
  reply.code(status);
  if (!adds) {
    for (const name of Object.keys(reply.getHeaders())) if (!headers.has(name)) reply.removeHeader(name);
  }
  headers.forEach((value, name) => {
    if (name !== "set-cookie") reply.header(name, value);
  });
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) reply.removeHeader("set-cookie").header("set-cookie", cookies);
};

const isEventStream = (reply: FastifyReply): boolean =>
  String(reply.getHeader("content-type")).startsWith("text/event-stream");

/** For a reply that has adopted the head. */
export const bodyOf = (reply: FastifyReply, { status, body }: Response): Readable | null => {
  if (body === null || isEmpty(status) || reply.request.method === "HEAD") {
    body?.cancel().catch(() => undefined);
    return null;
  }
  // Node sends headers with the first chunk, and clients wait for them.
  if (isEventStream(reply)) flushSoon(reply);
  return Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
};

export const flushSoon = ({ raw }: FastifyReply): void => {
  setImmediate(() => {
    // Fastify sets the headers after the last hook.
    if (!raw.headersSent && !raw.destroyed && raw.hasHeader("content-type")) raw.flushHeaders();
  });
};
