import { afterEach, expect, test, vi } from "vitest";
import { createEffort } from "../../../src/api/threads/search/effort.ts";

/** What a search by values may take while others search, too. */

let now = 0;
vi.spyOn(performance, "now").mockImplementation(() => now);
afterEach(() => {
  now = 0;
});

/** Each turn has to be waited for. */
const crowded = {
  async next(): Promise<void> {
    now += 900;
  },
};

test("its time is its own: what it waits for others is not counted", async () => {
  const effort = createEffort(crowded, undefined);
  for (let turn = 0; turn < 4; turn += 1) await effort.goOn();
  now += 1_000;
  await expect(effort.goOn()).rejects.toMatchObject({ kind: "invalid" });
});

test("is refused as one that may be tried again when it has waited for too long", async () => {
  const effort = createEffort(crowded, undefined);
  for (let turn = 0; turn < 5; turn += 1) await effort.goOn();
  await expect(effort.goOn()).rejects.toMatchObject({ kind: "unavailable" });
});
