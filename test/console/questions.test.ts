import { describe, expect, test } from "vitest";
import type { ActionAnswer, ActionCard, TextCard } from "../../console/src/parts/interrupts/card.ts";
import { questionOf } from "../../console/src/parts/interrupts/questions.ts";

const textCard = (value: unknown): TextCard => {
  const [card] = questionOf(value).cards;
  if (card?.kind !== "text") throw new Error("This is no question for a text.");
  return card;
};
const actionCard = (value: unknown): ActionCard => {
  const [card] = questionOf(value).cards;
  if (card?.kind !== "action") throw new Error("This is no action.");
  return card;
};

const ARGS = { what: "a copy" };

describe("the card of an interrupt", () => {
  test.each([
    ["question", "Which?"],
    ["title", "Which?"],
    ["prompt", "Which?"],
    ["message", "Which?"],
    ["instruction", "Which?"],
  ])("has the text under '%s' as its title", (key, title) => {
    expect(textCard({ [key]: title })).toMatchObject({ title, details: undefined, draft: undefined });
  });

  test("has further texts as a description, a draft to edit, options, and the rest as details", () => {
    expect(
      textCard({
        title: "Send?",
        message: "To **Ada**.",
        description: "Today.",
        draft: "Dear Ada",
        options: ["yes", { label: "Ask", value: 7 }],
        priority: 3,
      }),
    ).toEqual({
      kind: "text",
      title: "Send?",
      description: "To **Ada**.\n\nToday.",
      details: { priority: 3 },
      draft: "Dear Ada",
      options: [
        { label: "yes", answer: "yes" },
        { label: "Ask", answer: 7 },
      ],
    });
  });

  test("takes no text for a draft if nothing asks, and no long text for a title", () => {
    expect(textCard({ text: "Dear Ada" })).toMatchObject({ draft: undefined, details: { text: "Dear Ada" } });
    const long = "Why? ".repeat(100);
    expect(textCard(long)).toMatchObject({ title: "The graph waits for an answer", description: long });
    expect(textCard({ question: long })).toMatchObject({ description: long });
  });

  test("exists for every value", () => {
    for (const value of [null, undefined, 0, "", [], {}, [1, 2], { options: [{}] }, { action: 1, args: [] }])
      expect(textCard(value).title).toBe("The graph waits for an answer");
  });

  test("of a bare action is approved with true and rejected with false, and can't be edited", () => {
    for (const value of [
      { action: "burn", args: ARGS },
      { name: "burn", args: ARGS },
    ]) {
      const card = actionCard(value);
      expect([card.action, card.args, card.allowed]).toEqual(["burn", ARGS, ["accept", "ignore"]]);
      expect(card.answerOf({ decision: "accept" })).toBe(true);
      expect(card.answerOf({ decision: "ignore" })).toBe(false);
    }
  });

  test("of a tool call is answered as LangGraph's guide to reviews says", () => {
    const card = actionCard({ question: "Is this correct?", tool_call: { name: "burn", args: ARGS } });
    expect(card.title).toBe("Is this correct?");
    expect(card.answerOf({ decision: "accept" })).toEqual({ action: "continue" });
    expect(card.answerOf({ decision: "edit", args: ARGS })).toEqual({ action: "update", data: ARGS });
    expect(card.answerOf({ decision: "respond", text: "No" })).toEqual({ action: "feedback", data: "No" });
  });

  const request = { action: "send", args: { to: "Ada" } };
  const config = { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true };

  test("is answered with a list in the shape of agent inboxes, also if it has one action", () => {
    const question = questionOf({ action_request: request, config });
    const card = actionCard({ action_request: request, config });
    expect(card.allowed).toEqual(["accept", "edit", "respond", "ignore"]);
    const answerTo = (answer: ActionAnswer): unknown => question.answerOf([card.answerOf(answer)]);
    expect(answerTo({ decision: "accept" })).toEqual([{ type: "accept", args: request }]);
    expect(answerTo({ decision: "edit", args: { to: "Bob" } })).toEqual([
      { type: "edit", args: { action: "send", args: { to: "Bob" } } },
    ]);
    expect(answerTo({ decision: "respond", text: "later" })).toEqual([{ type: "response", args: "later" }]);
    expect(answerTo({ decision: "ignore" })).toEqual([{ type: "ignore", args: null }]);
  });

  test("is answered with decisions in the shape of the middleware, with either case of its names", () => {
    for (const value of [
      {
        actionRequests: [{ name: "send", args: {} }],
        reviewConfigs: [{ actionName: "send", allowedDecisions: ["reject"] }],
      },
      {
        action_requests: [{ name: "send", args: {} }],
        review_configs: [{ action_name: "send", allowed_decisions: ["reject"] }],
      },
    ]) {
      const card = actionCard(value);
      expect(card.allowed).toEqual(["respond"]);
      expect(questionOf(value).answerOf([card.answerOf({ decision: "respond", text: "no" })])).toEqual({
        decisions: [{ type: "reject", message: "no" }],
      });
    }
  });

  test("is one for a free answer if any part of the value has another shape, or allows no decision", () => {
    for (const value of [
      [{ action_request: request, config }, "text"],
      { actionRequests: [] },
      { action_request: {}, config: null },
      [{ action_request: { action: "burn", args: null }, config: { allow_accept: "yes" } }],
      {
        actionRequests: [{ name: "send" }, { name: "burn" }],
        reviewConfigs: [{ actionName: "burn", allowedDecisions: ["teleport"] }],
      },
    ])
      expect(textCard(value).details).toEqual(value);
  });

  test("offers a free answer if its configuration allows no decision", () => {
    const value = { action_request: { action: "burn", args: ARGS }, config: {} };
    expect(textCard(value).details).toEqual(value);
  });
});
