import { describe, expect, it } from "vitest";
import { LARGE_ANSWER_BYTES } from "../../../src/http/large-answers.ts";
import { resultOf } from "../../../src/protocols/mcp/results.ts";

const PLACE = { run_id: "a-run", thread_id: undefined };
const contentOf = (values: { text: string }) => {
  const { content, structuredContent } = resultOf({ kind: "completed", values }, PLACE);
  expect(structuredContent).toBe(values);
  return content;
};
/** As JSON, the state has this many bytes. */
const stateOf = (bytes: number) => ({ text: "x".repeat(bytes - '{"text":""}'.length) });

describe("the result of a graph without messages", () => {
  it("holds a large state once", () => {
    const text = "The result is too large to be repeated as text: it is in 'structuredContent'.";
    expect(contentOf(stateOf(LARGE_ANSWER_BYTES + 1))).toEqual([{ type: "text", text }]);
  });

  it("holds a smaller state also as text", () => {
    const values = stateOf(LARGE_ANSWER_BYTES);
    expect(contentOf(values)).toEqual([{ type: "text", text: JSON.stringify(values) }]);
  });
});
