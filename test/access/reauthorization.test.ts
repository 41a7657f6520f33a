import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AccessRequest } from "../../src/access/api-keys.ts";
import { createReauthorization, type HeldAccess } from "../../src/access/reauthorization.ts";
import { userOf } from "../../src/access/auth/authenticate.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** Checks of open connections, with an identity provider that answers when a test lets it. */

const EVERY_MS = 60_000;
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const aProvider = () => {
  const { logger, lines } = listeningLogger();
  const asked: string[] = [];
  const provider = {
    lines,
    asked,
    hangs: (_user: string): boolean => false,
    hold: (user: string): HeldAccess =>
      hold({ method: "GET", url: "/x", headers: { "x-user": user } }, userOf(user), async () => undefined),
  };
  const hold = createReauthorization({
    async authenticate({ headers }: AccessRequest) {
      const user = String(headers["x-user"]);
      asked.push(user);
      if (provider.hangs(user)) await new Promise<void>(() => undefined);
      return userOf(user);
    },
    assertKnown: () => undefined,
    everyMs: EVERY_MS,
    logger,
  });
  return provider;
};

test("connections whose checks hang end within three intervals, and the log says why; those of others continue", async () => {
  const provider = aProvider();
  provider.hangs = (user) => user === "slow";
  const [slow, quick] = [provider.hold("slow"), provider.hold("quick")];
  await vi.advanceTimersByTimeAsync(3 * EVERY_MS);
  expect([slow.signal.aborted, quick.signal.aborted]).toEqual([true, false]);
  expect(provider.lines.join("")).toContain("could not be reauthorized");
});

test("a connection whose check hung is checked again, and continues if that check passes", async () => {
  const provider = aProvider();
  provider.hangs = () => true;
  const held = provider.hold("slow");
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  expect(provider.asked).toHaveLength(1);
  provider.hangs = () => false;
  await vi.advanceTimersByTimeAsync(10 * EVERY_MS);
  expect(held.signal.aborted).toBe(false);
  expect(provider.asked.length).toBeGreaterThanOrEqual(10);
});

test("a released connection is checked no longer", async () => {
  const provider = aProvider();
  provider.hold("left").release();
  await vi.advanceTimersByTimeAsync(2 * EVERY_MS);
  expect(provider.asked).toEqual([]);
});
