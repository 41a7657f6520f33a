import { LRUCache } from "lru-cache";
import type { Logger } from "../../platform/lib/logger.ts";

export type SendResult =
  | { kind: "delivered"; status: number }
  | {
      kind: "failed";
      status: number | null;
      /** One sentence without text from the receiver. */
      reason: string;
      retryAfter?: number | undefined;
      forGood?: boolean;
      isOurs?: boolean;
    }
  | { kind: "stopped" };

/** `refused_status`: an answer other than success; `not_made`: this server could not make the request. */
const RESULTS = ["delivered", "refused_status", "time_out", "unreachable", "not_made"] as const;
type TryResult = (typeof RESULTS)[number];

type TryCounts = Record<TryResult, number>;

export const LATE_ANSWER = "The receiver did not answer in time.";

/** Callers can name any number of receivers, so these bound the memory and the log lines per minute. */
const RECEIVERS_AT_MOST = 1_000;
const LINES_AT_MOST = 60;
const MINUTE_MS = 60_000;

const resultOf = (result: Exclude<SendResult, { kind: "stopped" }>): TryResult => {
  if (result.kind === "delivered") return "delivered";
  if (result.status !== null) return "refused_status";
  if (result.isOurs === true) return "not_made";
  return result.reason === LATE_ANSWER ? "time_out" : "unreachable";
};

export const createTries = (
  logger: Pick<Logger, "warn">,
  names = "webhooks",
  now: () => number = () => performance.now(),
): { note(receiver: string, result: SendResult): void; figures(): Readonly<TryCounts> } => {
  const counts = Object.fromEntries(RESULTS.map((result) => [result, 0])) as TryCounts;
  const failing = new LRUCache<string, number>({ max: RECEIVERS_AT_MOST });
  let minuteBegan = Number.NEGATIVE_INFINITY;
  let lines = 0;

  const warn = (fields: object, text: string): void => {
    if (now() - minuteBegan >= MINUTE_MS) [minuteBegan, lines] = [now(), 0];
    if (lines >= LINES_AT_MOST) return;
    lines += 1;
    logger.warn(fields, text);
  };

  return {
    note(receiver, result) {
      if (result.kind === "stopped") return;
      counts[resultOf(result)] += 1;
      const failures = failing.get(receiver);
      if (result.kind === "delivered") {
        if (failures === undefined) return;
        failing.delete(receiver);
        return warn({ receiver, failures }, `a receiver takes ${names} again`);
      }
      if (failures !== undefined) return void failing.set(receiver, failures + 1);
      failing.set(receiver, 1);
      const { status, reason, forGood = false } = result;
      const next = forGood ? "this one is given up" : "they are tried again";
      warn({ receiver, status, reason }, `a receiver does not take ${names}; ${next}`);
    },
    figures: () => ({ ...counts }),
  };
};
