import { isPassing, retryPassing } from "../database/passing-faults.ts";
import { tellFailure } from "../database/outages.ts";
import type { WebhookDeliveryRow } from "../database/tables.ts";
import type { Faults } from "../domain/faults.ts";
import { createBackOff } from "../lib/back-off.ts";
import type { Logger } from "../lib/logger.ts";
import type { Deliveries, HeldDelivery } from "./deliveries.ts";
import { pauseSeconds } from "./schedule.ts";

/** What became of sending something. */
export type SendResult =
  | { kind: "delivered"; status: number }
  | {
      kind: "failed";
      /** What the receiver answered; null if it did not. */
      status: number | null;
      /** One sentence without anything that the receiver has written. */
      reason: string;
      /** Seconds for which the receiver asked. */
      retryAfter?: number | undefined;
      /** It wants no more of it. */
      forGood?: boolean;
    }
  /** This process stops, or can't send it yet. */
  | { kind: "stopped" };

export interface CourierParts {
  deliveries: Pick<Deliveries, "claim" | "read" | "delivered" | "failed" | "handBack">;
  /** Never rejects but by a fault of ours; ends within SEND_SECONDS_AT_MOST, or soon after `signal` aborts. */
  send(delivery: WebhookDeliveryRow, signal: AbortSignal): Promise<SendResult>;
  /** Whether this process takes what goes to its own routes. */
  own: boolean;
  faults: Faults;
  logger: Logger;
}

/** Sends what is due from `open` on. */
export interface Courier {
  open(): void;
  /** Something may have become due. */
  wake(): void;
  /** Waits a moment for what is being sent. */
  close(): Promise<void>;
}

/** What is sent takes no longer than this. */
export const SEND_SECONDS_AT_MOST = 20;
/** Of a delivery: more than its sending and the storing of that take, so that a second process sends it only if the first is gone. */
const LEASE_SECONDS = 60;
/** Under way at a time in a process: one that hangs holds a socket and its payload. */
const AT_ONCE = 16;
/** A receiver that hangs takes a quarter of them. */
const PER_RECEIVER = 4;
/** Nobody tells of what becomes due, or of what another process recorded. */
const LOOK_EVERY_MS = 2_000;
/** A server that stops waits so long for those that are being sent, then hands them back. */
const CLOSE_MS = 2_000;
/** The database is away: the lease ends, and the receiver hears of it twice. */
const SETTLE_FOR_MS = 30_000;

/**
 * Takes due deliveries, sends them, and stores what became of that: at least once each, since a process may die between
 * the two. What fails is tried again later (schedule.ts). A receiver that hangs keeps others from nothing: it has a few
 * places, and others have theirs.
 */
export const createCourier = ({ deliveries, send, own, faults, logger }: CourierParts): Courier => {
  const couldNotLook = tellFailure(logger, "webhooks could not be sent");
  const failing = createBackOff();
  const stopping = new AbortController();
  const underWay = new Map<string, number>();
  const sending = new Set<Promise<void>>();
  let opened = false;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let wanted = false;

  const count = (receiver: string, change: 1 | -1): void => {
    const deliveriesTo = (underWay.get(receiver) ?? 0) + change;
    if (deliveriesTo === 0) underWay.delete(receiver);
    else underWay.set(receiver, deliveriesTo);
  };

  const settle = async (held: HeldDelivery, row: WebhookDeliveryRow, result: SendResult): Promise<void> => {
    const log = { run_id: held.runId, receiver: held.receiver, attempt: held.attempt };
    if (result.kind === "stopped") return await deliveries.handBack(held);
    if (result.kind === "delivered") {
      await deliveries.delivered(held, result.status);
      return logger.debug({ ...log, status: result.status }, "webhook delivered");
    }
    const { status, reason, retryAfter, forGood = false } = result;
    const pause = pauseSeconds(row.failures + 1, retryAfter);
    const givenUp = await deliveries.failed(held, { status, reason, pauseSeconds: pause, forGood });
    if (givenUp === true) logger.warn({ ...log, status, reason }, "webhook given up");
    else logger.debug({ ...log, status, reason, pause }, "webhook failed; it is tried again");
  };

  const deliver = async (held: HeldDelivery): Promise<void> => {
    try {
      faults.reached("before-sending");
      const row = await deliveries.read(held);
      if (row === undefined) return;
      const result = await send(row, stopping.signal);
      faults.reached("after-sending");
      await retryPassing(() => settle(held, row, result), {
        forMs: SETTLE_FOR_MS,
        isWanted: () => !stopping.signal.aborted,
      });
    } catch (error) {
      // The lease ends, and it is tried again.
      if (isPassing(error)) couldNotLook(error);
      else logger.error({ err: error, run_id: held.runId }, "a webhook could not be sent");
    }
  };

  const start = (held: HeldDelivery): void => {
    count(held.receiver, 1);
    const work = deliver(held).finally(() => {
      count(held.receiver, -1);
      sending.delete(work);
      look();
    });
    sending.add(work);
  };

  /** Whether there may be more that could be sent at once. */
  const work = async (): Promise<boolean> => {
    const limit = AT_ONCE - sending.size;
    if (limit <= 0) return false;
    const options = { limit, perReceiver: PER_RECEIVER, underWay, own, leaseSeconds: LEASE_SECONDS };
    const held = await deliveries.claim(options);
    for (const one of held) start(one);
    return held.length > 0;
  };

  const look = (): void => {
    clearTimeout(timer);
    if (!opened || stopping.signal.aborted) return;
    wanted = true;
    looking ??= (async () => {
      let pauseMs = LOOK_EVERY_MS;
      while (wanted && !stopping.signal.aborted) {
        wanted = false;
        pauseMs = LOOK_EVERY_MS;
        try {
          if (await work()) wanted = true;
          failing.reset();
        } catch (error) {
          couldNotLook(error);
          pauseMs = failing.next();
        }
      }
      looking = undefined;
      if (!stopping.signal.aborted) timer = setTimeout(look, pauseMs);
    })();
  };

  return {
    open() {
      opened = true;
      look();
    },
    wake: look,
    async close() {
      opened = false;
      clearTimeout(timer);
      await looking;
      clearTimeout(timer);
      const late = setTimeout(() => stopping.abort(), CLOSE_MS);
      await Promise.all(sending);
      clearTimeout(late);
      stopping.abort();
    },
  };
};
