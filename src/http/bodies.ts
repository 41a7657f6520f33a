import type { FastifyInstance, FastifyRequest } from "fastify";
import type { IncomingMessage } from "node:http";
import {
  compressedBody,
  invalid,
  malformed,
  tooLarge,
  tooMany,
  unavailable,
} from "../platform/domain/errors.ts";
import { createBodyBudget, type BodyBudget, type BodyCharge, type BodyGrowth } from "./body-budget.ts";
import { createElementCounter } from "./element-counter.ts";
import { assertBearable, tooManyElements } from "./json-text.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";

declare module "fastify" {
  interface FastifyRequest {
    bodyCharge: BodyCharge | null;
  }
}

type CountsCallers = Pick<CallerLimits, "counted">;

export interface BodyLimits {
  /** Bytes of one body on routes for graph values and store items (`largeBody`). */
  bytes: number;
  /** Elements of one body on those routes. */
  elements: number;
}

/** For searches, counts, metadata and names, which usually have a few kilobytes. */
const SMALL_ROUTE = { bytes: 1_000_000, elements: 20_000 };

/** Bodies of full size that the process may receive at the same time. */
const FULL_BODIES_AT_ONCE = 4;

/** A body of full size takes seconds, unless its sender is slow. */
const SHARE_RETRY_SECONDS = 5;

const JSON_TYPE = "application/json";

/** A body that is not encoded. */
const IDENTITY = /^[\s,]*(?:identity[\s,]*)*$/i;

/** In characters, because a parser's message quotes the body. */
const COMPLAINT_AT_MOST = 200;

/**
 * Refuses values that cannot be stored: numbers out of range (1e400 becomes Infinity), and the key `__proto__`, which
 * becomes the prototype at the next `Object.assign`.
 */
const assertStorable = (value: unknown): void => {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw invalid("The body holds a number that is out of range.");
  } else if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object" || typeof item === "number") assertStorable(item);
  } else if (typeof value === "object" && value !== null) {
    for (const key in value) {
      if (key === "__proto__") throw invalid("The body holds the key '__proto__', which is refused.");
      const item = (value as Record<string, unknown>)[key];
      if (typeof item === "object" || typeof item === "number") assertStorable(item);
    }
  }
};

/** Parses JSON; undefined for an empty text. Throws `malformed` or `invalid`. */
export const parseBody = (text: string, elementsAtMost: number): unknown => {
  if (text.trim() === "") return undefined;
  assertBearable(text, elementsAtMost);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const complaint = (error as Error).message.replace(/ is not valid JSON$/, "").slice(0, COMPLAINT_AT_MOST);
    throw malformed(`The body is not valid JSON: ${complaint}.`, error);
  }
  assertStorable(value);
  return value;
};

const refusalOf = (growth: Exclude<BodyGrowth, "taken">): Error =>
  growth === "share spent"
    ? tooMany(
        "This server is taking in as much data of one caller as it can; nothing was stored.",
        SHARE_RETRY_SECONDS,
      )
    : unavailable("This server is taking in as much data as it can; nothing was stored.");

/** Stops at the first byte or element over the limit. */
const readText = (
  request: FastifyRequest,
  payload: IncomingMessage,
  elementsAtMost: number,
  done: (error: Error | null, text: string) => void,
): void => {
  const bytesAtMost = request.routeOptions.bodyLimit ?? 0;
  if (Number(request.headers["content-length"]) > bytesAtMost) return done(tooLarge(bytesAtMost), "");
  const chunks: Buffer[] = [];
  let bytes = 0;
  const counter = createElementCounter();
  const stop = (): void => {
    payload.off("data", onData).off("end", onEnd).off("error", onError);
  };
  const refuse = (error: Error): void => {
    stop();
    payload.resume(); // or the sender would wait forever to send the rest
    done(error, "");
  };
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > bytesAtMost) return refuse(tooLarge(bytesAtMost));
    const growth = request.bodyCharge?.grow(chunk.length) ?? "taken";
    if (growth !== "taken") refuse(refusalOf(growth));
    else {
      chunks.push(chunk);
      // `assertBearable` checks a single chunk before it is parsed.
      if (chunks.length === 1) return;
      if (chunks.length === 2) counter.add(chunks[0]!);
      if (counter.add(chunk) > elementsAtMost) refuse(tooManyElements(elementsAtMost));
    }
  };
  const onEnd = (): void => {
    stop();
    done(null, (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)).toString("utf8"));
  };
  const onError = (error: Error): void => {
    stop();
    done(malformed("The body did not arrive whole.", error), "");
  };
  payload.on("data", onData).on("end", onEnd).on("error", onError);
};

const parseAsJson = (
  app: FastifyInstance,
  { bytes, elements }: BodyLimits,
  budget: BodyBudget,
  callerLimits: CountsCallers | undefined,
): void => {
  app.decorateRequest("bodyCharge", null);
  app.decorateRequest("releaseBody", function releaseBody() {
    this.bodyCharge?.release();
    this.body = undefined;
  });
  app.addHook("onRoute", (route) => {
    route.bodyLimit = route.config?.largeBody ? bytes : Math.min(bytes, SMALL_ROUTE.bytes);
  });
  app.addHook("preParsing", (request, reply, payload, done) => {
    const { headers } = request;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    const encoding = headers["content-encoding"];
    if (hasBody && encoding !== undefined && !IDENTITY.test(encoding)) return done(compressedBody(encoding));
    if (hasBody && !request.ws) {
      const charge = budget.open(callerLimits?.counted(request));
      request.bodyCharge = charge;
      reply.raw.once("close", () => charge.release());
    }
    done(null, payload);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request, payload, done) => {
    const { largeBody = false } = request.routeOptions.config;
    const elementsAtMost = largeBody ? elements : Math.min(elements, SMALL_ROUTE.elements);
    readText(request, payload, elementsAtMost, (error, text) => {
      if (error !== null) return done(error, undefined);
      try {
        done(null, parseBody(text, elementsAtMost));
      } catch (refusal) {
        done(refusal as Error, undefined);
      }
    });
  });
};

/**
 * Parses bodies as JSON whatever their content type, because Studio and proxies send `text/plain`. Returns the shared
 * budget for other input, such as WebSockets.
 */
export const acceptBodies = (
  app: FastifyInstance,
  limits: BodyLimits,
  callerLimits: CountsCallers | undefined,
): BodyBudget => {
  // Fastify answers 415 to an unreadable content type, such as an empty one, before it calls a parser.
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.headers["content-type"] !== undefined) request.headers["content-type"] = JSON_TYPE;
    done();
  });
  const budget = createBodyBudget(limits.bytes * FULL_BODIES_AT_ONCE, limits.bytes);
  parseAsJson(app, limits, budget, callerLimits);
  return budget;
};
