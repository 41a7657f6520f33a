import { expect, test } from "vitest";
import { errorFields } from "../../../src/platform/lib/contents.ts";
import { leastOf, millisecondsOf } from "../../helpers/conditions.ts";

const stackOf = (error: Error): string =>
  (errorFields(error, { contents: false, ofProject: false }) as { stack: string }).stack;

test("stack lines that repeat the message are left out, even if they look like places in code", () => {
  const said = "    at secret (/home/secret.ts:1:1)";
  for (const message of [said, `secret\n${said}`, `${"secret\n".repeat(1_000)}${said}`]) {
    const stack = stackOf(new Error(message));
    expect(stack).not.toContain("secret");
    expect(stack).toContain("contents.test.ts");
  }
});

test("a message of 20 million equal characters is found in the stack at once", async () => {
  const error = new Error("x".repeat(20_000_000));
  expect(stackOf(error)).toContain("contents.test.ts");
  const takenMs = await leastOf(1_000, () => millisecondsOf(async () => void stackOf(error)));
  expect(takenMs).toBeLessThan(1_000);
});
