import { expect, test } from "vitest";
import { ANONYMOUS, KEY_SCOPES, type Caller } from "../../../src/access/caller.ts";
import { createCallerLimits, type CallerLimitOptions } from "../../../src/http/limits/caller-limits.ts";

const limitsOf = (options: Partial<CallerLimitOptions> = {}) =>
  createCallerLimits({
    perMinute: { reads: 10, searches: 10, writes: 10, runs: 2, streams: 0 },
    keyFactor: 3,
    countsAddresses: true,
    streamsPerCaller: 2,
    streamsAtMost: 5,
    ...options,
  });

const USER: Caller = { kind: "user", identity: "ann", permissions: [], user: {} };
const KEY: Caller = { kind: "key", id: "abc", scopes: KEY_SCOPES };
const from = (ip: string, caller: Caller = ANONYMOUS) => ({ caller, ip });

test("a user counts as one caller from any address, a key as several, and a caller without a name by address", () => {
  const limits = limitsOf();
  expect(limits.counted(from("10.0.0.1", USER))).toEqual({ name: "user:ann", times: 1 });
  expect(limits.counted(from("10.0.0.1", KEY))).toEqual({ name: "key:abc", times: 3 });
  expect(limits.counted(from("10.0.0.1"))).toEqual({ name: "address:10.0.0.1", times: 1 });
  expect(limits.counted(from("::ffff:10.0.0.1"))).toEqual({ name: "address:10.0.0.1", times: 1 });
});

test("all addresses of one IPv6 network are one caller", () => {
  const { counted } = limitsOf();
  expect(counted(from("2001:db8:0:1::1"))).toEqual(counted(from("2001:db8:0:1:ffff::2")));
  expect(counted(from("2001:db8:0:2::1"))).not.toEqual(counted(from("2001:db8:0:1::1")));
});

test("a caller from this machine, or behind a proxy with one address for all, is not counted", () => {
  for (const ip of ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"]) {
    expect(limitsOf().counted(from(ip))).toBeUndefined();
  }
  const behind = limitsOf({ countsAddresses: false });
  expect(behind.counted(from("10.0.0.1"))).toBeUndefined();
  expect(behind.counted(from("127.0.0.1", USER))).toEqual({ name: "user:ann", times: 1 });
});

test("a limit depends on its class and its caller, times the factor of a key", () => {
  const limits = limitsOf();
  const spendAll = (caller: Caller, rate: "runs" | "reads", times: number) =>
    Array.from({ length: times }, () => limits.spend(limits.counted(from("10.0.0.1", caller))!, rate)).filter(
      (spent) => spent?.isRefused === false,
    ).length;
  expect(spendAll(USER, "runs", 10)).toBe(2);
  expect(spendAll(USER, "reads", 20)).toBe(10);
  expect(spendAll(KEY, "runs", 10)).toBe(6);
  expect(spendAll(ANONYMOUS, "runs", 10)).toBe(2);
});

test("runs of crons and runs of requests count for the same limit, however the database names the caller", () => {
  const limits = limitsOf({ countedName: (name) => name.replace("ann", "digest of ann") });
  const user = limits.counted(from("10.0.0.1", USER))!;
  expect(limits.spend(user, "runs")).toMatchObject({ isRefused: false });
  expect(limits.takesRun("user:digest of ann")).toBe(true);
  expect(limits.takesRun("user:digest of ann")).toBe(false);
  expect(limits.spend(user, "runs")).toMatchObject({ isRefused: true });
  expect(limits.figures().refused.cron_runs).toBe(1);
  expect(limits.takesRun("user:other")).toBe(true);
  expect(limits.takesRun(null)).toBe(true);
  expect(
    limitsOf({ perMinute: { reads: 0, searches: 0, writes: 0, runs: 0, streams: 0 } }).takesRun("user:a"),
  ).toBe(true);
});

test("0 means no limit", () => {
  const limits = limitsOf();
  expect(limits.spend({ name: "a", times: 1 }, "streams")).toBeUndefined();
  limits.charge({ name: "a", times: 1 }, "streams", 1_000);
  expect(limits.spend({ name: "a", times: 1 }, "streams")).toBeUndefined();
});

test("a refusal has a message and Retry-After, and is counted", () => {
  const limits = limitsOf();
  const caller = { name: "a", times: 1 };
  limits.charge(caller, "runs", 3);
  const spent = limits.spend(caller, "runs")!;
  const error = limits.refusalOf({ name: "user:ann", times: 1 }, spent, "runs");
  expect(error).toMatchObject({
    kind: "too_many",
    message: "At most 2 new runs of one caller are taken in a minute; try again in 60 seconds.",
    retryAfterSeconds: 60,
  });
  expect(limits.figures().refused).toMatchObject({ runs: 1, reads: 0 });
});

test("each caller and all callers together have a maximum of streams, and an ended one makes room", () => {
  const limits = limitsOf();
  const [a, b, c] = ["a", "b", "c"].map((name) => ({ name, times: 1 }));
  const endFirst = limits.openStream(a);
  limits.openStream(a);
  expect(() => limits.openStream(a)).toThrow("At most 2 streams");
  endFirst();
  endFirst();
  limits.openStream(a);
  expect(() => limits.openStream(a)).toThrow("At most 2 streams");
  limits.openStream(b);
  limits.openStream(b);
  limits.openStream(undefined);
  expect(() => limits.openStream(c)).toThrow("This server has as many");
  expect(limits.figures()).toMatchObject({ open_streams: 5, refused: { open_streams: 3 } });
});

test("a caller without a name on this machine has as many streams as the process", () => {
  const limits = limitsOf({ streamsAtMost: 50 });
  for (let count = 0; count < 50; count += 1) limits.openStream(undefined);
  expect(() => limits.openStream(undefined)).toThrow("This server has as many");
});
