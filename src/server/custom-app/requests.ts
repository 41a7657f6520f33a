import type { FastifyRequest } from "fastify";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { tooLarge } from "../../platform/domain/errors.ts";
import { ownField } from "../../platform/lib/names.ts";

/** A request as the application is given it, and what the API is to get of its body. */
export interface WebRequest {
  readonly request: Request;
  /** The body was larger than what is taken. */
  readonly isTooLarge: boolean;
  /** What the API reads instead of Node's own request; undefined: nothing of it was read. */
  bodyForApi(given: Request): Readable | undefined;
  /** Takes and drops what nobody has read: a connection is used again. */
  release(): void;
}

const HAS_NO_BODY = new Set(["GET", "HEAD"]);
/** What an address can't have, or has for its own purposes. */
const HOST = /^[\w.-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/i;
/** Some of that form are none either: `a:99999`, `1.2.3.256`. */
const hostOf = (host: string): string =>
  HOST.test(host) && URL.canParse(`http://${host}`) ? host : "localhost";
/** A path that may be read in two ways: by what routes here, and by the application. */
const AMBIGUOUS = /[%\\]|\/\.|.\/$/;

/** Undefined if a part of it is one that addresses drop. */
const partOf = (value: string): string | undefined =>
  value === "." || value === ".." ? undefined : encodeURIComponent(value);

/**
 * The path of a request as the application sees it; undefined for one that has no such form. Where the API has a route, it is
 * spelled as the route is: what guards `/threads/*` must not miss `/thre%61ds/…`, nor a slash at the end.
 */
export const pathFor = ({ url, is404, routeOptions, params }: FastifyRequest): string | undefined => {
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

export interface WebRequestOptions {
  path: string;
  /** Aborted when the client has left. */
  signal: AbortSignal;
  bytesAtMost: number;
  /** The API may want the body as well. */
  keepsBody: boolean;
}

/**
 * Makes a web request of Node's. The body is read when the application reads it, no sooner and no faster; what it has read is
 * kept for the API, which may get the same request. Throws `tooLarge`.
 */
export const toWebRequest = (raw: IncomingMessage, options: WebRequestOptions): WebRequest => {
  const { path, signal, bytesAtMost, keepsBody } = options;
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
  /** As Node's request, for whoever comes after the application. */
  const rest = (): AsyncIterator<Buffer> => {
    chunks ??= raw.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
    return chunks;
  };
  const release = (): void => {
    // A request that is being iterated does not flow.
    void Promise.resolve(chunks?.return?.())
      .catch(() => undefined)
      .finally(() => raw.resume());
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await rest().next();
        if (done === true) return controller.close();
        bytes += value.length;
        if (bytes > bytesAtMost) {
          isTooLarge = true;
          release();
          return controller.error(tooLarge(bytesAtMost));
        }
        if (keepsBody) kept.push(value);
        controller.enqueue(value);
      },
    },
    { highWaterMark: 0 },
  );
  const init: RequestInit & { duplex: "half" } = {
    method,
    headers: headersOf(raw),
    body,
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

/** Gives Node's request the headers that an application has left or set. */
export const adoptHeaders = (raw: IncomingMessage, given: Request): void => {
  raw.headers = Object.fromEntries(
    [...given.headers].map(([name, value]) => [name, name === "set-cookie" ? [value] : value]),
  );
};
