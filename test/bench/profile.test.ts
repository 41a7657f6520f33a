import { expect, test } from "vitest";
import { compareProfiles, timesOf, type CpuProfile } from "./profile.ts";

/** Time by component, from the files that `--cpu-prof` writes. */

const frame = (functionName: string, url = "") => ({ functionName, url });
const PROFILE: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame("(root)"), children: [2, 3, 5, 6, 8] },
    { id: 2, callFrame: frame("(idle)") },
    {
      id: 3,
      callFrame: frame("tick", "file:///a/node_modules/@langchain/langgraph/dist/loop.js"),
      children: [4],
    },
    { id: 4, callFrame: frame("write", "file:///a/src/state/checkpoints/write.ts") },
    { id: 5, callFrame: frame("(garbage collector)") },
    {
      id: 6,
      callFrame: frame("submit", "/a/node_modules/pg/node_modules/pg-protocol/dist/x.js"),
      children: [7],
    },
    { id: 7, callFrame: frame("writev") },
    { id: 8, callFrame: frame("emit", "node:internal/timers") },
  ],
  samples: [8, 3, 4, 4, 2, 5, 6, 7, 8],
  timeDeltas: [9_000, 10_000, 5_000, 5_000, 50_000, 1_000, 2_000, 3_000, 4_000],
};

test("counts busy time by component after the start, and native functions for their caller", () => {
  expect(Object.fromEntries(timesOf(PROFILE))).toEqual({
    "@langchain/langgraph": 10,
    "src/state": 10,
    "(garbage collector)": 1,
    pg: 5,
    "node:internal/timers": 4,
  });
});

test("compares profiles in percent of LangGraph's own time", () => {
  const slower = timesOf({ ...PROFILE, timeDeltas: PROFILE.timeDeltas.map((delta) => 2 * delta) });
  const table = compareProfiles(["there", "here"], [slower, timesOf(PROFILE)]);
  expect(table).toMatch(/src\/state +\| +100 \| +100 \| +0 /);
  expect(table).toMatch(/pg +\| +50/);
});
