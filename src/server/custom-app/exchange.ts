import type { FastifyReply } from "fastify";
import type { Readable } from "node:stream";
import { CallerGoneError } from "../../platform/domain/errors.ts";
import { adoptHead, asResponse, bodyOf, flushSoon, toApiResponse } from "./responses.ts";
import type { WebRequest } from "./requests.ts";

interface ExchangeParts {
  web: WebRequest;
  reply: FastifyReply;
  ask(api: (given: Request) => Promise<Response>): Promise<unknown>;
  /** The API has this route, so a 404 of an application without `api` goes on to the API. */
  passesOn404: boolean;
  /** Throws if that is impossible. */
  proceed(given: Request): void;
  answer(response: Response): void;
  fail(error: unknown): void;
}

interface Promised<Value> {
  promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

const aPromised = <Value>(): Promised<Value> => {
  let settle: Pick<Promised<Value>, "resolve" | "reject"> | undefined;
  const promise = new Promise<Value>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle! };
};

/** Per response. More would be a leak. */
const LISTENERS_AT_MOST = 20;

/**
 * One request through the application and the API. The application runs first; if it calls `api()`, Fastify continues,
 * `onSend` gives the API's response to the application, and the application's response is sent:
 *
 *     application ──▶ api() ──▶ hooks and handler of the route ──▶ onSend ──▶ application ──▶ sent
 *          └── answers by itself ──▶ sent
 */
export const createExchange = (parts: ExchangeParts) => {
  const { web, reply, ask, passesOn404, proceed, answer, fail } = parts;
  const toApplication = aPromised<Response>();
  const fromApplication = aPromised<Response>();
  // A rejection without an awaiting reader is irrelevant.
  toApplication.promise.catch(() => undefined);
  fromApplication.promise.catch(() => undefined);
  let body: Readable | undefined;
  let isAsked = false;
  let isAnswered = false;
  let isPassedOn = false;

  const goOn = (given: Request): void => {
    isAsked = true;
    body = web.bodyForApi(given);
    proceed(given);
  };
  // A long response has a dozen listeners for its end; Node warns above ten.
  reply.raw.setMaxListeners(LISTENERS_AT_MOST);
  reply.raw.once("close", () => {
    toApplication.reject(new CallerGoneError());
    fromApplication.reject(new CallerGoneError());
    web.release();
  });

  return {
    /** The body for the API; undefined: Node's own request. */
    get body(): Readable | undefined {
      return body;
    },
    async api(given: Request): Promise<Response> {
      if (isAsked || isAnswered) throw new Error("the API can be asked once for each request");
      goOn(given);
      return await toApplication.promise;
    },
    async run(): Promise<void> {
      try {
        const response = asResponse(await ask(this.api));
        if (isAsked) return fromApplication.resolve(response);
        if (passesOn404 && response.status === 404) {
          response.body?.cancel().catch(() => undefined);
          isPassedOn = true;
          return goOn(web.request);
        }
        isAnswered = true;
        answer(response);
      } catch (error) {
        if (isAsked) return fromApplication.reject(error);
        isAnswered = true;
        fail(error);
      }
    },
    /** Replaces the API's payload by the application's, once. */
    async onSend(payload: unknown): Promise<unknown> {
      if (!isAsked || isAnswered) return payload;
      isAnswered = true;
      if (isPassedOn) {
        if (isStream(payload)) flushSoon(reply);
        return payload;
      }
      const made = toApiResponse(reply, payload as Parameters<typeof toApiResponse>[1]);
      toApplication.resolve(made.response);
      const response = await fromApplication.promise.catch((error: unknown) => {
        made.discard();
        throw error;
      });
      adoptHead(reply, response, { adds: false });
      if (made.isOwn(response.body)) {
        if (isStream(payload)) flushSoon(reply);
        return payload;
      }
      made.discard();
      reply.removeHeader("content-length");
      return bodyOf(reply, response);
    },
  };
};

export type Exchange = ReturnType<typeof createExchange>;

const isStream = (payload: unknown): boolean =>
  typeof payload === "object" && payload !== null && "pipe" in payload;
