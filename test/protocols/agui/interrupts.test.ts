import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import { onServer } from "../../helpers/servers.ts";
import { AGUI_GRAPHS, aFront, ofType, typesOf, type Event, type Front } from "./clients.ts";

let url: string;
let api: Api;
onServer({ graphConfigFile: AGUI_GRAPHS }, (opened) => {
  ({ url } = opened.server);
  ({ api } = opened);
});

interface Interrupt {
  id: string;
  reason: string;
  message?: string;
  metadata: { langgraph: { raw: unknown } };
}

const interruptsOf = (events: readonly Event[]): Interrupt[] => {
  const outcome = events.at(-1)?.["outcome"] as { type: string; interrupts?: Interrupt[] } | undefined;
  return outcome?.interrupts ?? [];
};
const resolved = ({ id }: Interrupt, payload: unknown) => ({ interruptId: id, status: "resolved", payload });
const lastText = ({ messages }: Front): unknown => messages.at(-1)?.content;
/** A page of the same thread, without the memory of this one. */
const reloaded = ({ threadId }: Front, graph: string): Front => aFront(url, graph, { threadId });

describe("a question of a graph", () => {
  test("ends the run with both snapshots and the interrupt; its answer continues the thread", async () => {
    const page = aFront(url, "approval");
    const asked = await page.run({ say: "a chair" });
    expect(typesOf(asked).slice(-3)).toEqual(["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    const [interrupt] = interruptsOf(asked);
    if (interrupt === undefined) throw new Error("There is no interrupt.");
    expect(interrupt).toMatchObject({
      reason: "langgraph:interrupt",
      metadata: { langgraph: { raw: { question: "Send this draft?", options: ["approve", "reject"] } } },
    });
    const answered = await page.run({
      resume: [resolved(interrupt, { decision: "edit", text: "Sold out." })],
    });
    expect(answered.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
    expect(lastText(page)).toBe("Sent: Sold out.");
    expect(page.state).toEqual({ draft: "Sold out.", status: "sent" });
  });

  test("is asked again by a request that does not answer it", async () => {
    const page = aFront(url, "approval");
    const [interrupt] = interruptsOf(await page.run({ say: "a chair" }));
    const other = reloaded(page, "approval");
    const again = await other.run({ say: "a table" });
    expect(interruptsOf(again)).toEqual([interrupt]);
    expect(typesOf(again)).toEqual(["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    expect(await api.runs(page.threadId)).toHaveLength(1);
  });

  test("that was answered is not answered again: the second request gets the run of the first", async () => {
    const page = aFront(url, "approval");
    const [interrupt] = interruptsOf(await page.run({ say: "a chair" }));
    if (interrupt === undefined) throw new Error("There is no interrupt.");
    const resume = [resolved(interrupt, true)];
    const others = [1, 2, 3].map(() => reloaded(page, "approval"));
    const answers = await Promise.all([page, ...others].map((front) => front.run({ resume })));
    for (const answer of answers) expect(answer.at(-1)).toMatchObject({ outcome: { type: "success" } });
    for (const front of others) expect(lastText(front)).toBe(lastText(page));
    const late = reloaded(page, "approval");
    expect((await late.run({ resume })).at(-1)).toMatchObject({ outcome: { type: "success" } });
    expect(await api.runs(page.threadId)).toHaveLength(2);
  });

  test("that does not wait is a RUN_ERROR", async () => {
    const page = aFront(url, "two-step");
    await page.run({ say: "x" });
    const events = await page.run({ resume: [{ interruptId: "nothing", status: "resolved" }] });
    expect(events).toMatchObject([
      { type: "RUN_STARTED" },
      {
        type: "RUN_ERROR",
        code: "invalid_resume",
        message: "'resume': interrupt 'nothing' does not wait for an answer.",
      },
    ]);
    expect(await api.runs(page.threadId)).toHaveLength(1);
  });
});

describe("several questions at once", () => {
  const ask = async () => {
    const page = aFront(url, "two-questions");
    const interrupts = interruptsOf(await page.run({ say: "x" }));
    const of = (name: string): Interrupt => {
      const found = interrupts.find(({ message }) => message === `What about ${name}?`);
      if (found === undefined) throw new Error(`Nothing asks about ${name}.`);
      return found;
    };
    return { page, left: of("left"), right: of("right") };
  };

  test("get their own answers, and a person may decline one", async () => {
    const { page, left, right } = await ask();
    expect([left.reason, right.reason]).toEqual(["question", "question"]);
    await page.run({ resume: [resolved(right, 2), { interruptId: left.id, status: "cancelled" }] });
    expect(page.state).toEqual({
      answers: { right: 2, left: { __agui_cancelled__: true, interrupt_id: left.id } },
    });
  });

  test("must all be answered, each once", async () => {
    const { page, left, right } = await ask();
    const failing = async (resume: object[]) =>
      (await reloaded(page, "two-questions").run({ resume })).at(-1);
    expect(await failing([resolved(left, 1)])).toMatchObject({
      type: "RUN_ERROR",
      message: `'resume' must answer all interrupts that wait: '${right.id}' is missing.`,
    });
    expect(await failing([resolved(left, 1), resolved(left, 2)])).toMatchObject({
      type: "RUN_ERROR",
      message: "'resume' answers an interrupt twice.",
    });
    expect(await api.runs(page.threadId)).toHaveLength(1);
    expect((await page.run({ resume: [resolved(left, 1), resolved(right, 2)] })).at(-1)?.type).toBe(
      "RUN_FINISHED",
    );
  });
});

describe("the older dialect", () => {
  test("asks by a custom event, and answers by a command", async () => {
    const page = aFront(url, "approval", { dialect: "older" });
    const asked = await page.run({ say: "a chair" });
    const [question] = ofType(asked, "CUSTOM");
    expect(question).toMatchObject({ name: "on_interrupt" });
    expect(JSON.parse(String(question?.["value"]))).toMatchObject({ question: "Send this draft?" });
    await page.run({ forwardedProps: { command: { resume: '{"decision":"reject"}' } } });
    expect(lastText(page)).toBe("The draft was rejected; nothing was sent.");
  });

  test("gets the run of an answer that is repeated, or a RUN_ERROR", async () => {
    const page = aFront(url, "approval", { dialect: "older" });
    await page.run({ say: "a chair" });
    const answer = { forwardedProps: { command: { resume: "approve" } }, runId: randomUUID() };
    await page.run(answer);
    expect((await page.run(answer)).at(-1)?.type).toBe("RUN_FINISHED");
    const again = await page.run({ ...answer, runId: randomUUID() });
    expect(again.at(-1)).toMatchObject({
      type: "RUN_ERROR",
      message: "'forwardedProps.command.resume': no interrupt of the thread waits for an answer.",
    });
    expect(await api.runs(page.threadId)).toHaveLength(2);
  });
});
