import { describe, expect, test } from "vitest";
import { decideMultitask, type UnfinishedRun } from "../../../src/api/runs/creation/multitask.ts";

const running: UnfinishedRun = { runId: "running", status: "running" };
const pending: UnfinishedRun = { runId: "pending", status: "pending" };

describe("the decision about a run on a thread", () => {
  test.each(["reject", "enqueue", "interrupt", "rollback"] as const)(
    "%s accepts the run if nothing else is unfinished, and cancels nothing",
    (strategy) => {
      expect(decideMultitask(strategy, [])).toEqual({ kind: "accept", cancel: [] });
    },
  );

  test.each([[[running]], [[pending]], [[running, pending]]])("reject refuses beside %j", (unfinished) => {
    expect(decideMultitask("reject", unfinished)).toEqual({ kind: "reject" });
  });

  test("enqueue accepts the run and leaves the others alone", () => {
    expect(decideMultitask("enqueue", [running, pending])).toEqual({ kind: "accept", cancel: [] });
  });

  test.each(["interrupt", "rollback"] as const)("%s ends the running and the waiting ones", (strategy) => {
    expect(decideMultitask(strategy, [running, pending])).toEqual({
      kind: "accept",
      cancel: [
        { ...running, action: strategy },
        { ...pending, action: strategy },
      ],
    });
  });
});
