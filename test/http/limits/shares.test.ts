import { expect, test } from "vitest";
import { ANONYMOUS, type Caller } from "../../../src/access/caller.ts";
import { createRoom, type Room } from "../../../src/http/room.ts";

/** One user takes as much as possible of a shared room; another one needs little. */

const user = (identity: string): Caller => ({ kind: "user", identity, permissions: [], user: {} });
const [BOB, ANN] = [user("bob"), user("ann")];
const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

const entering = (room: Room, caller: Caller) => {
  const seen: { leave?: () => void } = {};
  // Those who are still outside when the test ends are refused later.
  room.enter(caller).then(
    (leave) => (seen.leave = leave),
    () => undefined,
  );
  return seen;
};

test("one user has at most half of the places, and later users do not wait for this one", async () => {
  const room = createRoom({ places: 4 });
  const own = Array.from({ length: 12 }, () => entering(room, BOB));
  const hers = entering(room, ANN);
  await settled();
  expect(own.filter(({ leave }) => leave !== undefined)).toHaveLength(2);
  expect(hers.leave).toBeDefined();
  own[0]?.leave?.();
  own[0]?.leave?.();
  await settled();
  expect(own.filter(({ leave }) => leave !== undefined)).toHaveLength(3);
});

test.each<[string, Caller]>([
  ["key", { kind: "key", id: "k", scopes: [] }],
  ["caller without a name", ANONYMOUS],
])("a %s may have all places", async (_who, caller) => {
  const room = createRoom({ places: 4 });
  const own = Array.from({ length: 5 }, () => entering(room, caller));
  await settled();
  expect(own.filter(({ leave }) => leave !== undefined)).toHaveLength(4);
});

test("a user who leaves half of the bytes unread waits, and others do not", async () => {
  const room = createRoom({ places: 4, unreadBytesAtMost: 1_000 });
  const taken = room.unread(BOB, 500);
  const [his, hers] = [entering(room, BOB), entering(room, ANN)];
  await settled();
  expect([his.leave, hers.leave]).toEqual([undefined, expect.any(Function)]);
  taken();
  await settled();
  expect(his.leave).toBeDefined();
});

test("nobody comes in while all together have left too much unread", async () => {
  const room = createRoom({ places: 4, unreadBytesAtMost: 1_000 });
  const takes = [user("carl"), user("dora")].map((caller) => room.unread(caller, 500));
  const hers = entering(room, ANN);
  await settled();
  expect(hers.leave).toBeUndefined();
  expect([room.isOverfull(BOB), room.isOverfull(user("carl"))]).toEqual([false, false]);
  room.unread(user("carl"), 500);
  expect([room.isOverfull(BOB), room.isOverfull(user("carl"))]).toEqual([false, true]);
  for (const taken of takes) taken();
  await settled();
  expect(hers.leave).toBeDefined();
});

test("nobody waits for a place after hanging up, or for longer than allowed", async () => {
  const room = createRoom({ places: 1, waitingMsAtMost: 20 });
  const leave = await room.enter(BOB);
  const leaving = new AbortController();
  const gone = room.enter(ANN, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(gone).rejects.toThrow("gone");
  await expect(room.enter(ANN)).rejects.toMatchObject({ kind: "unavailable" });
  leave();
  (await room.enter(ANN))();
});

test("a failure leaves its place, and a generator has one only while it makes an item", async () => {
  const room = createRoom({ places: 1 });
  await expect(room.make(undefined, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  const items = room.each(
    undefined,
    (async function* () {
      yield 1;
      yield 2;
    })(),
  );
  expect((await items.next()).value).toBe(1);
  expect(await room.make(undefined, async () => "between")).toBe("between");
  expect((await items.next()).value).toBe(2);
});
