import type { Logger } from "../../platform/lib/logger.ts";

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
      /** The request could not be made: nobody was asked. */
      isOurs?: boolean;
    }
  /** This process stops, or can't send it yet. */
  | { kind: "stopped" };

/** What a try came to. `refused_status`: an answer that is no success; `not_made`: the server could not make the request. */
const RESULTS = ["delivered", "refused_status", "time_out", "unreachable", "not_made"] as const;
export type TryResult = (typeof RESULTS)[number];

/** Tries of this process since it started. */
export type TryCounts = Record<TryResult, number>;

export const LATE_ANSWER = "The receiver did not answer in time.";

/** Callers name receivers, any number of them: so many are remembered, and so many lines are written in a minute. */
const RECEIVERS_AT_MOST = 1_000;
const LINES_AT_MOST = 60;
const MINUTE_MS = 60_000;

const resultOf = (result: Exclude<SendResult, { kind: "stopped" }>): TryResult => {
  if (result.kind === "delivered") return "delivered";
  if (result.status !== null) return "refused_status";
  if (result.isOurs === true) return "not_made";
  return result.reason === LATE_ANSWER ? "time_out" : "unreachable";
};

/** Counts what tries came to, and says in the log when a receiver begins to fail and when it is back. */
export const createTries = (
  logger: Pick<Logger, "warn">,
  now: () => number = () => performance.now(),
): { note(receiver: string, result: SendResult): void; figures(): Readonly<TryCounts> } => {
  const counts = Object.fromEntries(RESULTS.map((result) => [result, 0])) as TryCounts;
  /** Receivers that fail, and how often they have. */
  const failing = new Map<string, number>();
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
        return warn({ receiver, failures }, "a receiver takes webhooks again");
      }
      if (failures !== undefined) return void failing.set(receiver, failures + 1);
      if (failing.size >= RECEIVERS_AT_MOST)
        for (const oldest of failing.keys()) {
          failing.delete(oldest);
          break;
        }
      failing.set(receiver, 1);
      const { status, reason } = result;
      warn({ receiver, status, reason }, "a receiver does not take webhooks; they are tried again");
    },
    figures: () => ({ ...counts }),
  };
};
