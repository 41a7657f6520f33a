import type { FastifyRequest, FastifyReply } from "fastify";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { tooLarge } from "../../platform/domain/errors.ts";
import { ownField } from "../../platform/lib/names.ts";

export interface WebRequest {
  readonly request: Request;
  readonly isTooLarge: boolean;
  /** Undefined: Node's request, of which nothing was read. */
  bodyForApi(given: Request): Readable | undefined;
  /** Drains unread bytes, so that the connection can be reused. */
  release(): void;
}

const HAS_NO_BODY = new Set(["GET", "HEAD"]);
const HOST = /^[\w.-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/i;
/** The pattern also matches invalid hosts: `a:99999`, `1.2.3.256`. */
const hostOf = (host: string): string =>
  HOST.test(host) && URL.canParse(`http://${host}`) ? host : "localhost";
/** Paths that Fastify and the application may read differently. */
const AMBIGUOUS = /[%\\]|\/\.|.\/$/;

/** Undefined for `.` and `..`, which URLs drop. */
const partOf = (value: string): string | undefined =>
  value === "." || value === ".." ? undefined : encodeURIComponent(value);

/**
 * Undefined if a URL can't express the path. Normalizes API paths, because a guard of `/threads/*` must also match
 * `/thre%61ds/…` and a trailing slash.
 */
const pathFor = ({ url, is404, routeOptions, params }: FastifyRequest): string | undefined => {
  const at = url.indexOf("?");
  const path = at === -1 ? url : url.slice(0, at);
  const query = at === -1 ? "" : url.slice(at);
  if (is404 || !AMBIGUOUS.test(path)) return `${path}${query}`;
  const values = params as Record<string, string>;
  const parts = (routeOptions.url ?? "").split("/").map((part) => {
    if (part === "*") return values["*"]?.split("/").map(partOf);
    return [part.startsWith(":") ? partOf(ownField(values, part.slice(1)) ?? "") : part];
  });
  const all = parts.flatMap((part) => part ?? [undefined]);
  return all.includes(undefined) ? undefined : `${all.join("/") || "/"}${query}`;
};

const headersOf = ({ headers }: IncomingMessage): Headers => {
  const copy = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) copy.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return copy;
};

/** Reads the body only as fast as the application does, and keeps it for the API. Throws `tooLarge`. */
export const toWebRequest = (
  fastifyRequest: FastifyRequest,
  signal: AbortSignal,
  bytesAtMost: number,
): WebRequest | undefined => {
  const { raw, is404 } = fastifyRequest;
  const path = pathFor(fastifyRequest);
  if (path === undefined) return undefined;
  const { method = "GET", headers } = raw;
  const host = hostOf(headers.host ?? "");
  const isSecure = "encrypted" in raw.socket;
  const address = `${isSecure ? "https" : "http"}://${host}${path}`;
  if (HAS_NO_BODY.has(method) || (headers["content-length"] ?? headers["transfer-encoding"]) === undefined) {
    const request = new Request(address, { method, headers: headersOf(raw), signal });
    return {
      request,
      isTooLarge: false,
      bodyForApi: (given) => (given === request ? undefined : replacement(given)),
      release: () => undefined,
    };
  }
  if (Number(headers["content-length"]) > bytesAtMost) throw tooLarge(bytesAtMost);

  const kept: Buffer[] = [];
  let bytes = 0;
  let isTooLarge = false;
  let chunks: AsyncIterator<Buffer> | undefined;
  const rest = (): AsyncIterator<Buffer> => {
    chunks ??= raw.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
    return chunks;
  };
  const release = (): void => {
    // A request does not flow while it is iterated.
    void Promise.resolve(chunks?.return?.())
      .catch(() => undefined)
      .finally(() => raw.resume());
  };
  const asRead = async function* (): AsyncGenerator<Buffer> {
    for (let next = await rest().next(); next.done !== true; next = await rest().next()) {
      bytes += next.value.length;
      if (bytes > bytesAtMost) {
        isTooLarge = true;
        release();
        throw tooLarge(bytesAtMost);
      }
      if (!is404) kept.push(next.value);
      yield next.value;
    }
  };
  const init: RequestInit & { duplex: "half" } = {
    method,
    headers: headersOf(raw),
    body: ReadableStream.from(asRead()),
    duplex: "half",
    signal,
  };
  const request = new Request(address, init);
  return {
    request,
    get isTooLarge() {
      return isTooLarge;
    },
    release,
    bodyForApi(given) {
      if (given !== request && !given.bodyUsed) return replacement(given);
      if (chunks === undefined) return undefined;
      return Readable.from(
        (async function* () {
          yield* kept;
          for (let next = await rest().next(); next.done !== true; next = await rest().next())
            yield next.value;
        })(),
        { objectMode: false },
      );
    },
  };
};

const replacement = ({ body }: Request): Readable =>
  body === null ? Readable.from([]) : Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);

export const adoptHeaders = (raw: IncomingMessage, given: Request): void => {
  raw.headers = Object.fromEntries(
    [...given.headers].map(([name, value]) => [name, name === "set-cookie" ? [value] : value]),
  );
};

type Payload = string | Buffer | Readable | ReadableStream | null | undefined;

const isEmpty = (status: number): boolean => status === 204 || status === 205 || status === 304;

const headersOfReply = (reply: FastifyReply): Headers => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) headers.append(name, String(one));
    }
  }
  return headers;
};

async function* piecesOf(
  payload: NonNullable<Payload>,
  onRead: () => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  onRead();
  const isWhole = typeof payload === "string" || Buffer.isBuffer(payload);
  const pieces = (isWhole ? [payload] : payload) as AsyncIterable<string | Uint8Array<ArrayBuffer>>;
  for await (const piece of pieces) yield typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
}

const discard = (payload: Payload): void => {
  if (payload instanceof Readable) payload.destroy();
};

/** The body is untouched unless the application reads it. */
export const toApiResponse = (reply: FastifyReply, payload: Payload) => {
  const { statusCode: status } = reply;
  let isRead = false;
  const hasBody = payload !== null && payload !== undefined && payload !== "" && !isEmpty(status);
  const body = hasBody ? ReadableStream.from(piecesOf(payload, () => (isRead = true))) : null;
  return {
    response: new Response(body, { status, headers: headersOfReply(reply) }),
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
