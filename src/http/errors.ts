import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { isDatabaseUnavailable } from "../database/unavailable.ts";
import { sqlState, ThreadloomError, type ErrorKind } from "../lib/errors.ts";

/** The only place that knows which status a kind of error has. */
const STATUS: Record<ErrorKind, number> = {
  malformed: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  invalid: 422,
  unavailable: 503,
};

/** Seconds after which a client may try again while the database is away. */
const RETRY_AFTER_SECONDS = 1;

/** SQLSTATEs of text that PostgreSQL can't keep: NUL, half a surrogate pair, bytes that are no UTF-8. */
const UNSTORABLE_TEXT = new Set(["22P05", "22P02", "22021"]);

interface Refusal {
  status: number;
  detail: string;
}

const fieldOf = (instancePath: string, context: string | undefined): string => {
  const path = instancePath.split("/").filter(Boolean).join(".");
  if (path !== "") return `'${path}'`;
  return context === "querystring" ? "The query" : context === "params" ? "The path" : "The body";
};

const refusalOf = (error: unknown): Refusal | undefined => {
  if (error instanceof ThreadloomError) return { status: STATUS[error.kind], detail: error.message };
  if (hasZodFastifySchemaValidationErrors(error)) {
    const first = error.validation[0];
    const field = fieldOf(first?.instancePath ?? "", error.validationContext);
    return { status: 422, detail: `${field}: ${first?.message ?? "is not valid"}.` };
  }
  const state = sqlState(error);
  if (state !== undefined && UNSTORABLE_TEXT.has(state)) {
    return {
      status: 422,
      detail: "The request holds text that can't be stored (NUL or half a surrogate pair).",
    };
  }
  if (isDatabaseUnavailable(error)) {
    return { status: 503, detail: "The database can't be reached at the moment; nothing was stored." };
  }
  const status = (error as Partial<FastifyError>).statusCode;
  if (status !== undefined && status >= 400 && status < 500) {
    const detail = status === 413 ? "The body is larger than this server accepts." : (error as Error).message;
    return { status, detail };
  }
  return undefined;
};

/**
 * Answers every error as `{"detail": "<one clear sentence>"}`. What we did wrong is logged with its cause and
 * hidden from the caller.
 */
export const answerError = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
  const refusal = refusalOf(error);
  if (refusal === undefined) {
    request.log.error(
      { err: error, method: request.method, url: request.routeOptions.url },
      "a request failed",
    );
    void reply.code(500).send({ detail: "The server could not answer this request; its log says why." });
    return;
  }
  if (refusal.status === 503) {
    request.log.warn({ err: error }, "the database can't be reached");
    void reply.header("retry-after", RETRY_AFTER_SECONDS);
  }
  void reply.code(refusal.status).send({ detail: refusal.detail });
};

export const answerUnknownRoute = (request: FastifyRequest, reply: FastifyReply): void => {
  void reply.code(404).send({ detail: `There is no route ${request.method} ${request.url.split("?")[0]}.` });
};
