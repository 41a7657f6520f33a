import { expect, test } from "vitest";
import { createFailedLogins } from "../../../src/http/limits/failed-logins.ts";
import { createRefusals } from "../../../src/http/limits/caller-limits.ts";
import { unauthenticated } from "../../../src/platform/domain/errors.ts";
import { createPendingLimits } from "../../../src/api/runs/creation/pending-limits.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** The log lines and metrics of refusals at a limit. */

const aLog = (shownUser?: (name: string) => string) => {
  const { logger, lines } = listeningLogger();
  const clock = { now: 0 };
  const refusals = createRefusals({ logger, shownUser, now: () => clock.now });
  const known = (): Record<string, unknown>[] =>
    lines.join("").trim() === ""
      ? []
      : lines
          .join("")
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { refusals, clock, known };
};

test("a caller is named once a minute for each limit, with the number of refusals", () => {
  const { refusals, clock, known } = aLog();
  for (let count = 0; count < 5; count += 1) refusals.note("reads", "user:ann");
  refusals.note("runs", "key:abc123");
  expect(known()).toMatchObject([
    { limit: "reads", caller_kind: "user", caller: "ann" },
    { limit: "runs", caller_kind: "key", caller: "abc123" },
  ]);
  clock.now = 60_000;
  refusals.note("reads", "user:ann");
  expect(known()[2]).toMatchObject({ caller: "ann", others_since: 4 });
  expect(refusals.figures()).toMatchObject({ reads: 6, runs: 1, searches: 0 });
});

test("users are hidden if names are encrypted, and long names are cut", () => {
  const { refusals, known } = aLog(() => "digest");
  refusals.note("reads", "user:canary-ann");
  refusals.note("reads", `key:${"k".repeat(5_000)}`);
  expect(JSON.stringify(known())).not.toContain("canary-ann");
  expect(known()[0]).toMatchObject({ caller: "digest" });
  expect(String(known()[1]?.caller).length).toBeLessThan(300);
});

test("thousands of addresses do not write thousands of lines", () => {
  const { refusals, known } = aLog();
  for (let count = 0; count < 5_000; count += 1) refusals.note("reads", `address:10.0.${count}`);
  expect(known()).toHaveLength(60);
  expect(refusals.figures().reads).toBe(5_000);
});

test("failed logins and runs that may not wait are counted and logged, too", async () => {
  const { refusals, known } = aLog();
  const logins = createFailedLogins({ perMinute: 1, countsAddresses: true, refusals });
  const request = { ip: "10.0.0.1", headers: {} };
  logins.failed(request, unauthenticated("No."));
  expect(() => logins.assertMayTry(request)).toThrow();
  const limits = createPendingLimits({
    perThread: 0,
    perCaller: 1,
    keyFactor: 1,
    onRefused: (caller) => refusals.note("pending_runs", caller ?? undefined),
  });
  const queryable = { query: async () => [{ caller: "user:0123", pending: 5 }] } as never;
  await expect(limits.assertRoomOfCaller(queryable, { caller: "user:0123" })).rejects.toThrow();
  expect(refusals.figures()).toMatchObject({ failed_logins: 1, pending_runs: 1 });
  expect(known()).toMatchObject([
    { limit: "failed_logins", caller_kind: "address", caller: "10.0.0.1" },
    { limit: "pending_runs", caller_kind: "user", caller: "0123" },
  ]);
});
