import { setMaxListeners } from "node:events";
import { isPassing, retryPassing } from "../../platform/database/passing-faults.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { EncryptionError } from "../../platform/domain/errors.ts";
import type { Faults } from "../../platform/domain/faults.ts";
import { createBackOff } from "../../platform/lib/back-off.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { receiverOf } from "../../platform/domain/webhook-address.ts";
import type { HeldDelivery } from "./claim.ts";
import { pauseSeconds } from "./schedule.ts";
import type { sendingOf } from "./sending.ts";
import { createTries, type SendResult } from "./tries.ts";

export interface DispatcherParts<Sent extends { url: string }> {
  /** For log lines: the name of a delivery, and of the field with its id. */
  words?: { name: string; id: string };
  deliveries: ReturnType<ReturnType<typeof sendingOf>> & {
    /** Undefined if this process no longer holds the delivery. */
    read(held: HeldDelivery): Promise<Sent | undefined>;
  };
  /** Rejects only on a bug; ends within SEND_SECONDS_AT_MOST, or soon after `signal` aborts. */
  send(delivery: Sent, signal: AbortSignal): Promise<SendResult>;
  own: boolean;
  faults: Faults;
  logger: Logger;
}

export const SEND_SECONDS_AT_MOST = 20;
/** A second process sends a delivery only if the first is gone. */
const LEASE_SECONDS = 60;
/** Concurrent deliveries of a process: a hanging one holds a socket and its payload. */
const AT_ONCE = 16;
/**
 * Bounds a hanging receiver, and all receivers of one user, because an address has many ports and a domain
 * many names.
 */
const PLACES = { receiver: AT_ONCE / 4, user: AT_ONCE / 4, key: AT_ONCE / 2 };
/** A stopping server waits this long for deliveries in progress, then hands them back. */
const CLOSE_MS = 2_000;
/** Time to store a result. Afterwards the lease ends, and the receiver gets the delivery twice. */
const SETTLE_FOR_MS = 30_000;

/** Sends each delivery at least once: a process may die between sending and storing. */
export const createDispatcher = <Sent extends { url: string }>({
  words: { name, id: idName } = { name: "webhook", id: "run_id" },
  deliveries,
  send,
  own,
  faults,
  logger,
}: DispatcherParts<Sent>) => {
  const couldNotPoll = logFailure(logger, `${name}s could not be sent`);
  const failing = createBackOff();
  const tries = createTries(logger, `${name}s`);
  const stopping = new AbortController();
  setMaxListeners(AT_ONCE, stopping.signal);
  const sending = new Map<Promise<void>, HeldDelivery>();
  let opened = false;
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> | undefined;
  let wanted = false;

  const settle = async (held: HeldDelivery, receiver: string, result: SendResult): Promise<void> => {
    const log = { [idName]: held.id, receiver, attempt: held.attempt };
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
      const row = await deliveries.read(held);
      if (row === undefined) return undefined;
      return { receiver: receiverOf(row.url), result: await send(row, stopping.signal) };
    } catch (error) {
      if (isPassing(error)) throw error;
      logger.error({ err: error, [idName]: held.id }, `a ${name} could not be sent`);
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
      tries.note(tried.receiver, tried.result);
      await retryPassing(() => settle(held, tried.receiver, tried.result), {
        forMs: SETTLE_FOR_MS,
        isWanted: () => !stopping.signal.aborted,
      });
    } catch (error) {
      // The lease ends, and the delivery is tried again.
      if (isPassing(error)) couldNotPoll(error);
      else logger.error({ err: error, [idName]: held.id }, `the result of a ${name} could not be stored`);
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
    for (const id of givenUp) logger.warn({ [idName]: id }, `${name} given up`);
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
    figures: () => tries.figures(),
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
