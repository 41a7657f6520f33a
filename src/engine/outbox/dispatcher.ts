import { setMaxListeners } from "node:events";
import { isPassing, retryPassing } from "../../platform/database/passing-faults.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { EncryptionError } from "../../platform/domain/errors.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import { createBackOff } from "../../platform/lib/back-off.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import { receiverOf } from "../../platform/domain/webhook-address.ts";
import type { Deliveries, DeliveryKind, HeldDelivery, SentWebhook } from "./deliveries.ts";
import { toSentPush, type SentPush } from "./pushes.ts";

export type SendResult =
  | { kind: "delivered"; status: number }
  | {
      kind: "failed";
      status: number | null;
      /** One sentence without text from the receiver. */
      reason: string;
      /** The receiver's `Retry-After`, in seconds. */
      retryAfter?: number | undefined;
      forGood?: boolean;
      isOurs?: boolean;
    }
  | { kind: "stopped" };

type Failed = Extract<SendResult, { kind: "failed" }>;

/** Rejects only on a bug; ends within SEND_SECONDS_AT_MOST, or soon after `signal` aborts. */
type Send<Delivery> = (delivery: Delivery, signal: AbortSignal) => Promise<SendResult>;

export interface DispatcherParts {
  deliveries: Omit<Deliveries, "replay" | "removeSettled">;
  send: { webhook: Send<SentWebhook>; push: Send<SentPush> };
  own: boolean;
  faults: Faults;
  logger: Logger;
}

export const SEND_SECONDS_AT_MOST = 20;
/** A second process sends a delivery only if the first is gone. */
const LEASE_SECONDS = 60;
/** Concurrent deliveries of a process: a hanging one holds a socket and its payload. */
const AT_ONCE = 16;
/** Bounds a hanging receiver, and all receivers of one caller, because a domain has many names. */
const PLACES = { receiver: AT_ONCE / 4, caller: AT_ONCE / 2 };
/** A stopping server waits this long for deliveries in progress, then hands them back. */
const CLOSE_MS = 2_000;
/** Time to store a result. Afterwards the lease ends, and the receiver gets the delivery twice. */
const SETTLE_FOR_MS = 30_000;

/** Long enough for a receiver to restart. */
const FIRST_SECONDS = 10;
/** Short enough for an operator who repairs a receiver. */
const LONGEST_SECONDS = 4 * 3_600;

/**
 * Doubles with each failure, less a random part of up to half, so that deliveries that failed together spread
 * out. About 25 tries in three days. `asked`: the receiver's `Retry-After`, in seconds.
 */
export const pauseSeconds = (failures: number, asked = 0, random = Math.random()): number => {
  const usual = Math.min(FIRST_SECONDS * 2 ** Math.max(0, failures - 1), LONGEST_SECONDS);
  return Math.max(usual * (1 - random / 2), Math.min(asked, LONGEST_SECONDS));
};

export const LATE_ANSWER = "The receiver did not answer in time.";

/** `refused_status`: an answer other than success; `not_made`: this server could not make the request. */
const RESULTS = ["delivered", "refused_status", "time_out", "unreachable", "not_made"] as const;
type Tries = Record<(typeof RESULTS)[number], number>;
const noTries = (): Tries => Object.fromEntries(RESULTS.map((result) => [result, 0])) as Tries;

const countedAs = ({ status, isOurs, reason }: Failed): keyof Tries => {
  if (status !== null) return "refused_status";
  if (isOurs === true) return "not_made";
  return reason === LATE_ANSWER ? "time_out" : "unreachable";
};

const NAMES: Readonly<Record<DeliveryKind, string>> = { webhook: "webhook", push: "push notification" };
const idOf = ({ kind, id }: Pick<HeldDelivery, "kind" | "id">) =>
  kind === "webhook" ? { run_id: id } : { push_id: id };

/** Sends each delivery at least once: a process may die between sending and storing. */
export const createDispatcher = ({ deliveries, send, own, faults, logger }: DispatcherParts) => {
  const couldNotPoll = logFailure(logger, "webhooks could not be sent");
  const failing = createBackOff();
  const tries: Record<DeliveryKind, Tries> = { webhook: noTries(), push: noTries() };
  const stopping = new AbortController();
  setMaxListeners(AT_ONCE, stopping.signal);
  const sending = new Map<Promise<void>, HeldDelivery>();
  let opened = false;
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> | undefined;
  let wanted = false;

  const settle = async (held: HeldDelivery, receiver: string, result: SendResult): Promise<void> => {
    const log = { ...idOf(held), receiver, attempt: held.attempt };
    const name = NAMES[held.kind];
    if (result.kind === "stopped") return await deliveries.handBack(held);
    if (result.kind === "delivered") {
      await deliveries.delivered(held, result.status);
      return logger.debug({ ...log, status: result.status }, `${name} delivered`);
    }
    const { status, reason, retryAfter, forGood = false } = result;
    const pause = pauseSeconds(held.failures + 1, retryAfter);
    const givenUp = await deliveries.failed(held, { status, reason, pauseSeconds: pause, forGood });
    if (givenUp === true) logger.warn({ ...log, status, reason }, `${name} given up`);
    else logger.debug({ ...log, status, reason, pause }, `${name} failed; it is tried again`);
  };

  /** Undefined if this process no longer holds the delivery. Throws passing faults. */
  const attempted = async (
    held: HeldDelivery,
  ): Promise<{ receiver: string; result: SendResult } | undefined> => {
    try {
      if (held.kind === "webhook") {
        const row = await deliveries.readWebhook(held);
        return row && { receiver: receiverOf(row.url), result: await send.webhook(row, stopping.signal) };
      }
      const row = await deliveries.readPush(held);
      if (row === undefined) return undefined;
      const push = toSentPush(row);
      return { receiver: receiverOf(push.url), result: await send.push(push, stopping.signal) };
    } catch (error) {
      if (isPassing(error)) throw error;
      logger.error({ err: error, ...idOf(held) }, `a ${NAMES[held.kind]} could not be sent`);
      // Counts as a failed try, with growing pauses and an end: a value that can't be decrypted now can't be
      // in a minute.
      const reason =
        error instanceof EncryptionError
          ? error.message
          : "The server failed to make the request; its log says why.";
      return { receiver: held.receiver, result: { kind: "failed", status: null, reason, isOurs: true } };
    }
  };

  const deliver = async (held: HeldDelivery): Promise<void> => {
    try {
      faults.reached("before-sending");
      const tried = await attempted(held);
      if (tried === undefined) return;
      faults.reached("after-sending");
      const { result } = tried;
      if (result.kind !== "stopped")
        tries[held.kind][result.kind === "delivered" ? "delivered" : countedAs(result)] += 1;
      await retryPassing(() => settle(held, tried.receiver, result), {
        forMs: SETTLE_FOR_MS,
        isWanted: () => !stopping.signal.aborted,
      });
    } catch (error) {
      // The lease ends, and the delivery is tried again.
      if (isPassing(error)) couldNotPoll(error);
      else
        logger.error(
          { err: error, ...idOf(held) },
          `the result of a ${NAMES[held.kind]} could not be stored`,
        );
    }
  };

  const start = (held: HeldDelivery): void => {
    const work = deliver(held).finally(() => {
      sending.delete(work);
      poll();
    });
    sending.set(work, held);
  };

  const work = async (): Promise<boolean> => {
    const limit = AT_ONCE - sending.size;
    if (limit <= 0) return false;
    const { held, givenUp } = await deliveries.claim({
      limit,
      places: PLACES,
      underWay: [...sending.values()],
      own,
      leaseSeconds: LEASE_SECONDS,
    });
    for (const one of givenUp) logger.warn(idOf(one), `${NAMES[one.kind]} given up`);
    for (const one of held) start(one);
    return held.length + givenUp.length > 0;
  };

  const poll = (): void => {
    clearTimeout(timer);
    if (!opened || stopping.signal.aborted) return;
    wanted = true;
    polling ??= (async () => {
      let retryMs: number | undefined;
      // `close` awaits this loop before it aborts `stopping`, so the loop also ends on `opened`.
      while (wanted && opened && !stopping.signal.aborted) {
        wanted = false;
        retryMs = undefined;
        try {
          if (await work()) wanted = true;
          failing.reset();
        } catch (error) {
          couldNotPoll(error);
          retryMs = failing.next();
        }
      }
      polling = undefined;
      if (opened && retryMs !== undefined) timer = setTimeout(poll, retryMs);
    })();
  };

  return {
    open(): void {
      opened = true;
      poll();
    },
    /** Deliveries may be due: recorded here, or found by the worker's poll. No signal announces them. */
    wake: poll,
    /** Tries of this process, by their result. */
    figures: (): Readonly<Record<DeliveryKind, Readonly<Tries>>> => tries,
    async close(): Promise<void> {
      opened = false;
      clearTimeout(timer);
      await polling;
      clearTimeout(timer);
      const late = setTimeout(() => stopping.abort(), CLOSE_MS);
      await Promise.all(sending.keys());
      clearTimeout(late);
      stopping.abort();
    },
  };
};

export type Dispatcher = ReturnType<typeof createDispatcher>;

const SWEEP_MS = 60_000;
/** Rows may hold megabytes. */
const PER_BATCH = 500;

/** Several processes share the work: the statement skips locked rows. */
export const startOutboxRetention = (
  deliveries: Pick<Deliveries, "removeSettled">,
  retentionSeconds: number,
  logger: Logger,
): { close(): Promise<void> } => {
  let closed = false;
  const periodic = startPeriodic({
    everyMs: SWEEP_MS,
    async work() {
      while (!closed && (await deliveries.removeSettled(retentionSeconds, PER_BATCH)) >= PER_BATCH);
    },
    onError: logFailure(logger, "old deliveries of webhooks could not be removed"),
  });
  return {
    async close() {
      closed = true;
      await periodic.close();
    },
  };
};
