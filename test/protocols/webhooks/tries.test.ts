import { expect, test } from "vitest";
import { createTries, LATE_ANSWER, type SendResult } from "../../../src/engine/outbox/tries.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** The log lines and metrics of tries to deliver webhooks. */

const failed = (status: number | null, reason: string) => ({ kind: "failed", status, reason }) as const;
const delivered: SendResult = { kind: "delivered", status: 200 };
const aLog = () => {
  const { logger, lines } = listeningLogger();
  const logged = () =>
    lines
      .join("")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { tries: createTries(logger), logged };
};

test("a receiver is named when it begins to fail, and when it recovers", () => {
  const { tries, logged } = aLog();
  for (let count = 0; count < 3; count += 1)
    tries.note("a.example", failed(500, "The receiver answered 500."));
  expect(logged()).toMatchObject([
    { receiver: "a.example", status: 500, reason: "The receiver answered 500." },
  ]);
  tries.note("a.example", delivered);
  tries.note("a.example", delivered);
  expect(logged()).toHaveLength(2);
  expect(logged()[1]).toMatchObject({
    receiver: "a.example",
    failures: 3,
    msg: "a receiver takes webhooks again",
  });
});

test("the line of a receiver's first failure says whether the delivery is tried again", () => {
  const { tries, logged } = aLog();
  tries.note("a.example", failed(500, "The receiver answered 500."));
  tries.note("b.example", { ...failed(410, "The receiver answered 410."), forGood: true });
  expect(logged().map(({ msg }) => msg)).toEqual([
    "a receiver does not take webhooks; they are tried again",
    "a receiver does not take webhooks; this one is given up",
  ]);
});

test("tries are counted by result", () => {
  const { tries } = aLog();
  tries.note("a", delivered);
  tries.note("a", failed(410, "The receiver answered 410."));
  tries.note("a", failed(null, LATE_ANSWER));
  tries.note("a", failed(null, "The receiver refused the connection."));
  tries.note("a", { kind: "failed", status: null, reason: "Sealed.", isOurs: true });
  tries.note("a", { kind: "stopped" });
  expect(tries.figures()).toEqual({
    delivered: 1,
    refused_status: 1,
    time_out: 1,
    unreachable: 1,
    not_made: 1,
  });
});

test("thousands of receivers do not write thousands of lines", () => {
  const { tries, logged } = aLog();
  for (let count = 0; count < 3_000; count += 1) tries.note(`${count}.example`, failed(null, LATE_ANSWER));
  expect(logged()).toHaveLength(60);
});
