import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { compressedBody, invalid, malformed } from "../platform/domain/errors.ts";
import { callerGone } from "./caller-gone.ts";
import { createRoom, type Room } from "./room.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** For long handlers: drops the body and its place among the large ones. */
    releaseBody(): void;
    leaveBody: (() => void) | null;
    /** Of this request. Parsers are not given the reply. */
    response: ServerResponse;
  }
}

export interface BodyLimits {
  /** Bytes of one body on routes for graph values and store items (`largeBody`). */
  bytes: number;
  /** Elements of one body on those routes. */
  elements: number;
}

/** For searches, counts, metadata and names, which usually have a few kilobytes. */
const SMALL_ROUTE = { bytes: 1_000_000, elements: 20_000 };

/** Pictures and documents are larger; messages are not. */
const LARGE_BODY_BYTES = 256 * 1024;
/** Until its handler has ended, a body of 16 MB is in memory as bytes, as text and as a value. */
const LARGE_BODIES_AT_ONCE = 4;

const JSON_TYPE = "application/json";

/** A body that is not encoded. */
const IDENTITY = /^[\s,]*(?:identity[\s,]*)*$/i;

/** In characters, because a parser's message quotes the body. */
const COMPLAINT_AT_MOST = 200;

/**
 * `JSON.stringify` overflows the stack at about 5,000 levels, and `jsonb` fails at 50,000. The server could store
 * deeper values but never return them.
 */
const NESTING_AT_MOST = 500;

/**
 * Throws `invalid` for a value that is too deep, that has too many elements (items of lists and members of objects), or
 * that cannot be stored: 1e400 becomes Infinity, and `__proto__` the prototype at the next `Object.assign`.
 */
const assertBearable = (root: unknown, elementsAtMost: number): void => {
  let elements = 0;
  const check = (value: unknown, depth: number): void => {
    if (typeof value === "number") {
      if (!Number.isFinite(value)) throw invalid("The body holds a number that is out of range.");
      return;
    }
    if (typeof value !== "object" || value === null) return;
    if (depth > NESTING_AT_MOST) throw invalid(`The body is nested deeper than ${NESTING_AT_MOST} levels.`);
    const isList = Array.isArray(value);
    const items: unknown[] = isList ? value : Object.values(value);
    elements += items.length;
    if (elements > elementsAtMost)
      throw invalid(
        `The body holds more than ${elementsAtMost} elements (items of lists and members of objects).`,
      );
    if (!isList && Object.hasOwn(value, "__proto__"))
      throw invalid("The body holds the key '__proto__', which is refused.");
    for (const item of items) check(item, depth + 1);
  };
  check(root, 1);
};

/** Parses JSON; undefined for an empty text. Throws `malformed` or `invalid`. */
export const parseBody = (text: string, elementsAtMost: number): unknown => {
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const complaint = (error as Error).message.replace(/ is not valid JSON$/, "").slice(0, COMPLAINT_AT_MOST);
    throw malformed(`The body is not valid JSON: ${complaint}.`, error);
  }
  assertBearable(value, elementsAtMost);
  return value;
};

/** A large body waits here before it becomes a text. */
export const createBodyRoom = (): Room => createRoom({ places: LARGE_BODIES_AT_ONCE });

export const isLargeBody = (bytes: number): boolean => bytes > LARGE_BODY_BYTES;

/** Parses bodies as JSON whatever their content type, because Studio and proxies send `text/plain`. */
export const acceptBodies = (app: FastifyInstance, limits: BodyLimits): void => {
  const room = createBodyRoom();
  app.decorateRequest("leaveBody", null);
  app.decorateRequest("response", undefined as never);
  app.decorateRequest("releaseBody", function releaseBody() {
    this.leaveBody?.();
    this.body = undefined;
  });
  // Fastify answers 415 to an unreadable content type, such as an empty one, before it calls a parser.
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.headers["content-type"] !== undefined) request.headers["content-type"] = JSON_TYPE;
    done();
  });
  app.addHook("onRoute", (route) => {
    route.bodyLimit = route.config?.largeBody ? limits.bytes : Math.min(limits.bytes, SMALL_ROUTE.bytes);
  });
  app.addHook("preParsing", (request, reply, payload, done) => {
    const { headers } = request;
    request.response = reply.raw;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    const encoding = headers["content-encoding"];
    if (hasBody && encoding !== undefined && !IDENTITY.test(encoding)) return done(compressedBody(encoding));
    done(null, payload);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (request, body: Buffer, done) => {
    const { largeBody = false } = request.routeOptions.config;
    const elementsAtMost = largeBody ? limits.elements : Math.min(limits.elements, SMALL_ROUTE.elements);
    const parse = (): void => {
      let value: unknown;
      try {
        value = parseBody(body.toString("utf8"), elementsAtMost);
      } catch (refusal) {
        return done(refusal as Error, undefined);
      }
      done(null, value);
    };
    if (!isLargeBody(body.length)) return parse();
    room.enter(request.caller, callerGone(request.response)).then(
      (leave) => {
        request.leaveBody = leave;
        // Fastify's onResponse does not run for a caller who hangs up.
        request.response.once("close", leave);
        parse();
      },
      (refusal: Error) => done(refusal, undefined),
    );
  });
};
