import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { isCancelled, isContention, isPassing } from "../platform/database/passing-faults.ts";
import {
  CallerGoneError,
  HandlerRefusal,
  ObjectStoreError,
  sqlState,
  ThreadloomError,
  tooLarge,
  type ErrorKind,
} from "../platform/domain/errors.ts";
import { markedOfGraph } from "../platform/lib/contents.ts";
import { boundedText } from "../platform/lib/log-fields.ts";
import { ownField } from "../platform/lib/names.ts";

/** The only place that maps kinds of errors to statuses. */
const STATUS: Record<ErrorKind, number> = {
  malformed: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  unsupported: 415,
  invalid: 422,
  too_many: 429,
  unavailable: 503,
};

/** While the database is unavailable or memory is short. */
const RETRY_AFTER_SECONDS = 1;

/** PostgreSQL's errors for values that it cannot store, by SQLSTATE. Validation should refuse these values first. */
const UNSTORABLE: Record<string, string> = {
  "22P05": "holds text that can't be stored (a NUL character)",
  "22021": "holds text that can't be stored (a NUL character, or no UTF-8)",
  "54000": "holds a value that is too large to be stored",
};

/** 22P02 means half a surrogate pair only if `jsonb` was parsed. Any other 22P02 is a bug of this server. */
const unstorableOf = (error: unknown): string | undefined => {
  const state = sqlState(error);
  if (state === undefined) return undefined;
  if (state === "22P02" && (error as Error).message.endsWith("type json")) {
    return "holds text that can't be stored (half a surrogate pair)";
  }
  return ownField(UNSTORABLE, state);
};

export interface Refusal {
  status: number;
  detail: string;
  headers?: Readonly<Record<string, string>>;
}

/** Replaces Fastify's own messages. */
const SENTENCES: Record<string, string> = {
  FST_ERR_BAD_URL: "The path can't be read: it is not validly percent-encoded, or no path at all.",
  FST_ERR_MAX_PARAM_LENGTH: "A part of the path is longer than this server accepts.",
};

/** The answer to an error; undefined for a fault of this server. */
export const refusalOf = (error: unknown): Refusal | undefined => {
  if (error instanceof ThreadloomError) return { status: STATUS[error.kind], detail: error.message };
  if (error instanceof HandlerRefusal) {
    return { status: error.status, detail: error.message, headers: error.headers };
  }
  const unstorable = unstorableOf(error);
  if (unstorable !== undefined) return { status: 422, detail: `The request ${unstorable}.` };
  if (isCancelled(error)) {
    return { status: 503, detail: "The database took too long or cancelled this; try again." };
  }
  if (isContention(error)) {
    return { status: 503, detail: "Others changed the same at the same moment; try again." };
  }
  if (error instanceof ObjectStoreError) {
    return { status: 503, detail: "The object store can't be used at the moment." };
  }
  if (isPassing(error)) {
    return { status: 503, detail: "The database can't be used at the moment." };
  }
  const { statusCode: status, code } = error as Partial<FastifyError>;
  if (status !== undefined && status >= 400 && status < 500) {
    return { status, detail: ownField(SENTENCES, code ?? "") ?? (error as Error).message };
  }
  return undefined;
};

/** An outage refuses all requests alike, including health checks. */
const LOG_EVERY_MS = 10_000;
/** There are about a dozen different sentences. */
const LOGGED_AT_MOST = 100;

/**
 * Logs each temporary refusal once in ten seconds. Otherwise a single caller wrote 91 KB in 17 seconds of an outage.
 */
const createRefusalLog = () => {
  const known = new Map<string, { at: number; suppressed: number }>();
  return (request: FastifyRequest, error: unknown, detail: string): void => {
    const now = performance.now();
    const before = known.get(detail);
    if (before !== undefined && now - before.at < LOG_EVERY_MS) {
      before.suppressed += 1;
      return;
    }
    if (known.size >= LOGGED_AT_MOST) known.clear();
    known.set(detail, { at: now, suppressed: 0 });
    const since = before === undefined || before.suppressed === 0 ? {} : { others_since: before.suppressed };
    // This server's own refusals, such as during startup, have no useful stack.
    const own = error instanceof ThreadloomError && error.cause === undefined;
    const logged = error instanceof HandlerRefusal ? markedOfGraph(error) : error;
    request.log.warn(
      { ...(own ? { reason: detail } : { err: logged }), ...since },
      "a request can't be served at the moment",
    );
  };
};

export type AnswerError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;

/**
 * Answers every error as `{"detail": "<one clear sentence>"}`. Logs the cause of the server's own faults, and hides it
 * from the caller.
 */
export const createAnswerError = (): AnswerError => {
  const logRefusal = createRefusalLog();
  return (thrown, request, reply) => {
    const error =
      (thrown as Partial<FastifyError>).code === "FST_ERR_CTP_BODY_TOO_LARGE"
        ? tooLarge(request.routeOptions.bodyLimit ?? 0)
        : thrown;
    if (error instanceof CallerGoneError) {
      reply.hijack();
      reply.raw.destroy();
      return;
    }
    const refusal = refusalOf(error);
    if (refusal === undefined) {
      request.log.error(
        { err: error, method: request.method, url: request.routeOptions.url },
        "a request failed",
      );
      void reply.code(500).send({ detail: "The server could not answer this request; its log says why." });
      return;
    }
    if (error instanceof ThreadloomError && error.retryAfterSeconds !== undefined)
      void reply.header("retry-after", error.retryAfterSeconds);
    if (refusal.headers !== undefined) void reply.headers(refusal.headers);
    else if (refusal.status === 503) {
      logRefusal(request, error, refusal.detail);
      void reply.header("retry-after", RETRY_AFTER_SECONDS);
    }
    void reply.code(refusal.status);
    const answer = { detail: boundedText(refusal.detail, DETAIL_AT_MOST).toWellFormed() };
    // Fastify would close a connection with unread bytes, which resets it: the client would lose the answer.
    if (refusal.status === 413) reply.removeHeader("connection");
    void reply.send(answer);
  };
};

/** In characters: a message may quote a name of a megabyte. */
const DETAIL_AT_MOST = 2_000;

/** In characters. */
const PATH_AT_MOST = 200;

export const answerUnknownRoute = (request: FastifyRequest, reply: FastifyReply): void => {
  const path = request.originalUrl.split("?")[0]?.slice(0, PATH_AT_MOST);
  void reply.code(404).send({ detail: `There is no route ${request.method} ${path}.` });
};

/** Refusals of Node's HTTP parser, by code. */
const UNREADABLE: Record<string, { status: number; detail: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "The request did not arrive whole in time." },
  HPE_HEADER_OVERFLOW: { status: 431, detail: "The request's headers are larger than this server accepts." },
};

/** Answers input that is not HTTP. Never logs the error: it holds the raw bytes with the API key. */
export const answerUnreadable = (error: Error & { code?: string }, socket: Socket): void => {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  if (socket.writable) {
    const { status, detail } = ownField(UNREADABLE, error.code ?? "") ?? {
      status: 400,
      detail: "The request is not valid HTTP.",
    };
    const body = JSON.stringify({ detail });
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
        "X-Content-Type-Options: nosniff\r\n" +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroySoon();
};
