import { afterEach, expect, test } from "vitest";
import type { AccessRequest } from "../../src/access/api-keys.ts";
import {
  createReauthorization,
  type Reauthorization,
  type HeldAccess,
} from "../../src/access/reauthorization.ts";
import { userOf } from "../../src/access/auth/users.ts";
import { eventually } from "../helpers/conditions.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** Rounds of reauthorization for many callers, with an identity provider that answers when a test lets it. */

const EVERY_MS = 200;
const closing: Reauthorization[] = [];
afterEach(() => {
  for (const one of closing.splice(0)) one.close();
});

const aProvider = (everyMs = EVERY_MS) => {
  const { logger, lines } = listeningLogger();
  /** Calls that are not answered yet, by user. */
  const open = new Map<string, (() => void)[]>();
  const answered: string[] = [];
  let hangs: (user: string) => boolean = () => false;
  const reauthorization = createReauthorization({
    async authenticate({ headers }: AccessRequest) {
      const user = String(headers["x-user"]);
      if (hangs(user)) {
        const calls = open.get(user) ?? [];
        open.set(user, calls);
        await new Promise<void>((resolve) => calls.push(resolve));
      }
      answered.push(user);
      return userOf(user);
    },
    assertKnown: () => undefined,
    everyMs,
    logger,
  });
  closing.push(reauthorization);
  return {
    lines,
    open,
    answered,
    hang(which: (user: string) => boolean) {
      hangs = which;
    },
    hold: (user: string, more: Record<string, string> = {}): HeldAccess =>
      reauthorization.hold(
        { method: "GET", url: "/x", headers: { "x-user": user, ...more } },
        userOf(user),
        async () => undefined,
      ),
  };
};

const isUnavailable = ({ signal }: HeldAccess): boolean =>
  (signal.reason as { kind?: string } | undefined)?.kind === "unavailable";

test("each user has one authorization call at a time, whatever headers the connections have, and users do not wait for each other", async () => {
  const { hold, hang, open, answered } = aProvider();
  hang((user) => user === "mallory");
  for (let index = 0; index < 100; index += 1) hold("mallory", { "x-made-up": String(index) });
  await eventually("mallory to be checked", () => open.has("mallory"));
  const others = Array.from({ length: 20 }, (_, index) => hold(`user-${index}`));
  await eventually("each other user to be checked twice", () =>
    others.every((_, index) => answered.filter((user) => user === `user-${index}`).length >= 2),
  );
  expect(open.get("mallory")).toHaveLength(1);
  expect(others.filter(({ signal }) => signal.aborted)).toEqual([]);
});

test("connections of a user who was not checked for two intervals end, and the log says that the rounds are too slow", async () => {
  const { hold, hang, lines } = aProvider();
  hang(() => true);
  const held = [
    ...Array.from({ length: 30 }, (_, index) => hold(`user-${index}`)),
    hold("user-0", { "x-a": "b" }),
  ];
  await eventually("all to be ended", () => held.every(({ signal }) => signal.aborted));
  expect(held.every(isUnavailable)).toBe(true);
  expect(lines.join("")).toContain("takes longer than ACCESS_CHECK_SECONDS");
});

test("a user whose check hung is checked again once it answers, and users who answered in time lose nothing", async () => {
  const { hold, hang, open, answered } = aProvider(1_200);
  hang((user) => user === "slow");
  const [slow, quick] = [hold("slow"), hold("quick")];
  await eventually("slow to be checked", () => open.has("slow"));
  hang(() => false);
  for (const answer of open.get("slow") ?? []) answer();
  const before = answered.length;
  await eventually("both to be checked again", () =>
    ["slow", "quick"].every((user) => answered.slice(before).includes(user)),
  );
  expect([slow.signal.aborted, quick.signal.aborted]).toEqual([false, false]);
});
