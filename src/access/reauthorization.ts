import { unauthenticated } from "../platform/domain/errors.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { within } from "../platform/lib/within.ts";
import type { AccessRequest, Authenticate } from "./api-keys.ts";
import { isLossOfAccess } from "./auth/refusals.ts";
import { callerName, type Caller } from "./caller.ts";

/** Checks a connection with the caller's current state. Rejects if a request would be refused. */
export type Reauthorize = (caller: Caller) => Promise<unknown>;

export interface HeldAccess {
  /** Aborts when access is lost, with the error of a refused request as its reason. */
  readonly signal: AbortSignal;
  /** As last authenticated. */
  readonly caller: Caller;
  release(): void;
}

/** Checks an open connection (stream, WebSocket, waiting request) until it is released. */
export type HoldAccess = (request: AccessRequest, caller: Caller, ask: Reauthorize) => HeldAccess;

interface ReauthorizationOptions {
  authenticate: Authenticate;
  /** Throws if a caller that is no user may not continue. Called each second, so it must read memory only. */
  assertKnown: (caller: Caller) => void;
  /** Maximum interval for users between checks. */
  everyMs: number;
  logger: Pick<Logger, "warn">;
}

const POLL_EVERY_MS = 1_000;
/** A check may come early by this part of the interval, so that checks spread after a restart or an outage. */
const JITTER = 0.25;
/** Failed checks before a connection ends: tolerates short outages of the database or the identity provider. */
const FAILURES_AT_MOST = 3;
const RETRY_PART = 0.25;
/** Three checks that hang end a connection within three intervals. */
const ANSWER_PART = 0.5;

/** Keys are revoked, tokens expire, and threads change owners while connections are open. */
export const createReauthorization =
  ({ authenticate, assertKnown, everyMs, logger }: ReauthorizationOptions): HoldAccess =>
  ({ method, url, headers }, opened, ask) => {
    const loss = new AbortController();
    let caller = opened;
    let failures = 0;
    let timer: NodeJS.Timeout | undefined;
    let isReleased = false;

    const release = (): void => {
      isReleased = true;
      clearTimeout(timer);
    };
    const lose = (error: unknown): void => {
      if (isReleased) return;
      release();
      loss.abort(error);
    };
    const checkIn = (milliseconds: number): void => {
      if (!isReleased) timer = setTimeout(() => void check(), milliseconds).unref();
    };
    const askAboutUser = async (): Promise<void> => {
      // The cached caller may be out of date.
      const found = await authenticate({ method, url, headers, afresh: true });
      if (callerName(found) !== callerName(opened)) {
        throw unauthenticated("The request could not be authenticated.");
      }
      await ask(found);
      caller = found;
    };
    const check = async (): Promise<void> => {
      try {
        if (opened.kind === "user") await within(everyMs * ANSWER_PART, askAboutUser());
        else assertKnown(opened);
        failures = 0;
      } catch (error) {
        if (isLossOfAccess(error) || opened.kind !== "user") return lose(error);
        failures += 1;
        if (failures < FAILURES_AT_MOST) return checkIn(everyMs * RETRY_PART);
        if (!isReleased)
          logger.warn({ err: error }, "a caller could not be reauthorized; its connection is ended");
        return lose(error);
      }
      checkNext();
    };
    const checkNext = (): void =>
      checkIn(opened.kind === "user" ? everyMs * (1 - JITTER * Math.random()) : POLL_EVERY_MS);

    checkNext();
    return {
      signal: loss.signal,
      get caller() {
        return caller;
      },
      release,
    };
  };
