import type { FastifyReply } from "fastify";
import type { Readable } from "node:stream";
import { CallerGoneError } from "../../platform/domain/errors.ts";
import { adoptHead, asResponse, bodyOf, flushSoon, toApiResponse } from "./responses.ts";
import type { WebRequest } from "./requests.ts";

/**
 * One request between the application and the API. The application is asked first. If it asks the API, the request goes on
 * through Fastify; what the API is about to send comes back to the application as a response; what the application makes of that
 * is sent:
 *
 *     application ──▶ api() ──▶ hooks and handler of the route ──▶ onSend ──▶ application ──▶ sent
 *          └── answers by itself ──▶ sent
 */
export interface Exchange {
  /** For `api` of the application's environment. */
  api(given: Request): Promise<Response>;
  /** What the API reads as the body; undefined: the request itself. */
  readonly body: Readable | undefined;
  /** Calls the application, whose answer is sent, or is what `onSend` waits for. */
  run(): Promise<void>;
  /** What is sent instead of what the API is about to send. Once; then it is what it is given. */
  onSend(payload: unknown): Promise<unknown>;
}

export interface ExchangeParts {
  web: WebRequest;
  reply: FastifyReply;
  /** Calls the application. */
  ask(api: Exchange["api"]): Promise<unknown>;
  /** The API has a route for the request, which an application that knows nothing of it leaves to it by a 404. */
  passesOn404: boolean;
  /** The request goes on to the API; throws if it can't. */
  proceed(given: Request): void;
  /** The application has answered by itself. */
  answer(response: Response): void;
  /** It has failed before the API was asked. */
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

/** Of the end of one response: more would be a leak. */
const LISTENERS_AT_MOST = 20;

export const createExchange = (parts: ExchangeParts): Exchange => {
  const { web, reply, ask, passesOn404, proceed, answer, fail } = parts;
  const toApplication = aPromised<Response>();
  const fromApplication = aPromised<Response>();
  // Whoever waits for them hears of it; if nobody does, there is nothing to tell.
  toApplication.promise.catch(() => undefined);
  fromApplication.promise.catch(() => undefined);
  let body: Readable | undefined;
  let isAsked = false;
  let isAnswered = false;
  /** The application has said that it has nothing to do with the request. */
  let isPassedOn = false;

  const goOn = (given: Request): void => {
    isAsked = true;
    body = web.bodyForApi(given);
    proceed(given);
  };
  // A long answer has its own dozen that want to know of its end, however long it is; Node warns above ten.
  reply.raw.setMaxListeners(LISTENERS_AT_MOST);
  reply.raw.once("close", () => {
    toApplication.reject(new CallerGoneError());
    fromApplication.reject(new CallerGoneError());
    web.release();
  });

  return {
    get body() {
      return body;
    },
    async api(given) {
      if (isAsked || isAnswered) throw new Error("the API can be asked once for each request");
      goOn(given);
      return await toApplication.promise;
    },
    async run() {
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
    async onSend(payload) {
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
      // It was that of another body.
      reply.removeHeader("content-length");
      return bodyOf(reply, response);
    },
  };
};

const isStream = (payload: unknown): boolean =>
  typeof payload === "object" && payload !== null && "pipe" in payload;
