import { afterEach, expect, test, vi } from "vitest";
import { createEffort } from "../../../src/api/threads/search/effort.ts";

/** The time limit of a search by values while others search, too. */

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

test("the limit counts a search's own time, not its waiting for others", async () => {
  const effort = createEffort(crowded, undefined);
  for (let turn = 0; turn < 4; turn += 1) await effort.goOn();
  now += 1_000;
  await expect(effort.goOn()).rejects.toMatchObject({ kind: "invalid" });
});

test("a search that has waited too long is refused, and may be retried", async () => {
  const effort = createEffort(crowded, undefined);
  for (let turn = 0; turn < 5; turn += 1) await effort.goOn();
  await expect(effort.goOn()).rejects.toMatchObject({ kind: "unavailable" });
});
