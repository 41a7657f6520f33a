/**
 * LangSmith's client logs each failed batch, holds up to a gigabyte of them, and tries each for minutes. A server must
 * not suffer from an endpoint that is down.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../platform/lib/logger.ts";

/** Of all batches under way. */
const BYTES_AT_MOST = 32 * 1024 * 1024;
const BATCHES_AT_MOST = 100;
const ANSWERED_WITHIN_MS = 20_000;
const INFO_WITHIN_MS = 3_000;
const PAUSES_MS = [1_000, 4_000];
const LOGGED_EVERY_MS = 60_000;

const BATCH = /\/runs\/(?:batch|multipart)$/;
const PASSING = new Set([408, 425, 429]);

const isPassing = (status: number): boolean => status >= 500 || PASSING.has(status);
const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === "TimeoutError";

export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface TraceDelivery {
  /** For LangSmith's client. Batches of traces never fail: a batch that can't be sent is dropped and logged. */
  fetch: Fetch;
  /** Batches are tried once from now on. */
  close(): void;
}

interface DeliveryOptions {
  /** Default: the global `fetch`. */
  send?: Fetch;
  /** Between the attempts to send a batch. */
  pausesMs?: readonly number[];
}

export const createTraceDelivery = (
  logger: Logger,
  { send = fetch, pausesMs = PAUSES_MS }: DeliveryOptions = {},
): TraceDelivery => {
  const closing = new AbortController();
  setMaxListeners(BATCHES_AT_MOST, closing.signal);
  let bytesUnderWay = 0;
  let batchesUnderWay = 0;
  let dropped = 0;
  let loggedAt = -Infinity;

  const drop = (cause: unknown): void => {
    dropped += 1;
    const now = performance.now();
    if (now - loggedAt < LOGGED_EVERY_MS) return;
    logger.warn({ err: cause, batches: dropped }, "traces could not be sent to LangSmith");
    dropped = 0;
    loggedAt = now;
  };

  /** Resolves to the status, or throws the cause. */
  const attempt = async (input: Parameters<Fetch>[0], init: RequestInit): Promise<number> => {
    const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
    const { status, body } = await send(input, { ...init, signal });
    await body?.cancel();
    return status;
  };

  const sendBatch = async (input: Parameters<Fetch>[0], init: RequestInit, isOptional: boolean) => {
    for (const pauseMs of [...pausesMs, undefined]) {
      const answer = await attempt(input, init).catch((error: unknown) => ({ error }));
      if (typeof answer === "number" && answer < 400) return answer;
      // The client then sends its batches in the older form.
      if (answer === 404 && isOptional) return answer;
      const mayPass = typeof answer === "number" ? isPassing(answer) : !isTimeout(answer.error);
      if (pauseMs === undefined || !mayPass || closing.signal.aborted) {
        drop(typeof answer === "number" ? new Error(`The endpoint answered ${answer}.`) : answer.error);
        break;
      }
      await delay(pauseMs, undefined, { signal: closing.signal }).catch(() => undefined);
    }
    return 202;
  };

  return {
    async fetch(input, init = {}) {
      const { pathname } = new URL(input instanceof Request ? input.url : input);
      if (init.method === "GET" && pathname.endsWith("/info")) {
        const signal = AbortSignal.timeout(INFO_WITHIN_MS);
        // Without an answer the client asks again before each batch. It has defaults for missing fields.
        return await send(input, { ...init, signal }).catch(() => Response.json({}));
      }
      if (init.method !== "POST" || !BATCH.test(pathname)) return await send(input, init);
      // The client may give a stream, which can be read only once.
      const body = new Uint8Array(await new Response(init.body).arrayBuffer());
      if (bytesUnderWay + body.length > BYTES_AT_MOST || batchesUnderWay >= BATCHES_AT_MOST) {
        drop(new Error("Too many traces wait for the endpoint."));
        return new Response(null, { status: 202 });
      }
      bytesUnderWay += body.length;
      batchesUnderWay += 1;
      try {
        const status = await sendBatch(input, { ...init, body }, pathname.endsWith("/multipart"));
        return new Response(null, { status: status === 404 ? status : 202 });
      } finally {
        bytesUnderWay -= body.length;
        batchesUnderWay -= 1;
      }
    },
    close: () => closing.abort(),
  };
};
