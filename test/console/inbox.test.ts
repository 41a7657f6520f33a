import { beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, textsOf, type Api } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)("the inbox", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let api: Api;
  onConsole({ graphConfigFile: GRAPHS, context: { viewport: { width: 1280, height: 720 } } }, (opened) => {
    shown = opened;
    api = apiOf(shown.server);
  });
  beforeEach(async () => {
    await query(shown.server, "delete from threadloom.threads");
    await shown.page.evaluate("localStorage.clear()");
    await shown.go("/store");
    await shown.page.reload();
  });

  const aQuestion = async (kind: string, title: string, assistant = "asking"): Promise<string> => {
    const threadId = await api.aThread({ metadata: { title } });
    await api.aFinishedRun(threadId, { assistant_id: assistant, input: saying(kind) });
    return threadId;
  };
  const open = async (place = ""): Promise<void> => {
    await shown.go(`/inbox${place}`);
    await shown.page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor();
  };
  const threads = () => shown.page.getByRole("list", { name: "Waiting threads" }).getByRole("link");
  const thread = (title: string) => threads().filter({ hasText: title });
  const heading = (title: string) => shown.page.getByRole("heading", { level: 2, name: title, exact: true });
  const isSelected = (title: string): Promise<void> => heading(title).waitFor();
  const answerOf = async (threadId: string): Promise<unknown> => {
    const { values } = await api.untilQuiet(threadId);
    return textsOf(values?.messages).at(-1);
  };

  test("says so if nothing waits, and shows a question that comes, with a badge in the navigation", async () => {
    const { page } = shown;
    await open();
    await page.getByText("Nothing waits for you").waitFor();
    expect(await shown.violations()).toEqual([]);
    await aQuestion("options", "Delete the table");
    await thread("Delete the table").waitFor();
    await isSelected("Delete the table");
    await page.getByRole("list", { name: "Last messages" }).getByText("options").waitFor();
    await page.reload();
    await page.getByRole("link", { name: "Inbox 1" }).first().waitFor();
    expect(await page.evaluate("document.activeElement?.closest('[data-card]') === null")).toBe(true);
  });

  test("is worked through by keys: next, accept, edit, answer, open", async () => {
    const { page } = shown;
    const first = await aQuestion("inbox", "First");
    const second = await aQuestion("mail", "Second");
    const third = await aQuestion("free", "Third");
    const fourth = await aQuestion("draft", "Fourth");
    await open();
    await isSelected("First");
    await page.keyboard.press("j");
    await isSelected("Second");
    await page.keyboard.press("k");
    await isSelected("First");
    await page.getByRole("button", { name: "Accept" }).waitFor();
    await eventually("the key accepts", async () => {
      if ((await heading("First").count()) === 0) return true;
      await page.keyboard.press("a");
      return undefined;
    });
    await isSelected("Second");
    await page.getByRole("status").filter({ hasText: "Accepted transfer in First" }).waitFor();
    expect(await answerOf(first)).toContain('"type":"accept"');
    expect((await api.thread(second)).status).toBe("interrupted");

    await page.getByRole("group", { name: "send_email" }).waitFor();
    await page.keyboard.press("e");
    await eventually("an argument has the focus", () =>
      page.evaluate("document.activeElement.matches('input')"),
    );
    await page.keyboard.type("a a ");
    await page.getByRole("group", { name: /^Changes of/ }).waitFor();
    // Written, not pressed: the key accepts nothing in a text.
    expect((await api.thread(second)).status).toBe("interrupted");
    await page.keyboard.press("Control+Enter");
    await isSelected("Third");
    expect(await answerOf(second)).toContain('"type":"edit"');

    await page.getByText("Which colour?").waitFor();
    await page.keyboard.press("r");
    await page.keyboard.type("red");
    await page.keyboard.press("Control+Enter");
    await isSelected("Fourth");
    expect(await answerOf(third)).toBe('Answered: "red"');
    await page.getByRole("button", { name: "Send the draft as it is" }).waitFor();
    await page.keyboard.press("a");
    await page.keyboard.press("o");
    await eventually("the thread is open", () => page.url().endsWith(`#/threads/${fourth}`));
    expect((await api.thread(fourth)).status).toBe("interrupted");
  });

  test("accepts one question with a key that is held", async () => {
    const { page } = shown;
    const first = await aQuestion("inbox", "First");
    const second = await aQuestion("inbox", "Second");
    await open();
    await isSelected("First");
    await page.getByRole("button", { name: "Accept" }).waitFor();
    await eventually("the key accepts", async () => {
      if ((await heading("First").count()) === 0) return true;
      await page.keyboard.up("a");
      await page.keyboard.down("a");
      return undefined;
    });
    await isSelected("Second");
    await page.getByRole("button", { name: "Accept" }).waitFor();
    for (let repeated = 0; repeated < 20; repeated += 1) await page.keyboard.down("a");
    await page.keyboard.up("a");
    await api.untilQuiet(first);
    expect((await api.thread(second)).status).toBe("interrupted");
    expect(await api.runs(second)).toHaveLength(1);
  });

  test("answers several questions together, and continues a graph that stopped before a node", async () => {
    const { page } = shown;
    const two = await aQuestion("two", "Two");
    const stopped = await api.aThread({ metadata: { title: "Stopped" } });
    await api.aFinishedRun(stopped, {
      assistant_id: "asking",
      input: saying("free"),
      interrupt_before: ["ask"],
    });
    await open();
    await isSelected("Two");
    for (const position of ["1 of 2", "2 of 2"]) {
      await page
        .getByRole("group", { name: /What is in/ })
        .getByText(position)
        .waitFor();
      await page.getByRole("textbox", { name: "Answer" }).fill("itself");
      await page.getByRole("button", { name: "Answer", exact: true }).click();
    }
    await page.getByRole("status").filter({ hasText: "Answered 2 questions in Two" }).waitFor();
    await isSelected("Stopped");
    const { values } = await api.untilQuiet(two);
    expect(textsOf(values?.messages)).toContain('In Rome: "itself"');
    await page.getByText("The graph has stopped before ask.").waitFor();
    await page.getByRole("button", { name: "Continue" }).click();
    await eventually(
      "the graph asks",
      async () => Object.keys((await api.thread(stopped)).interrupts).length > 0,
    );
  });

  test("keeps what was written while other threads are shown, until it is sent", async () => {
    const { page } = shown;
    const first = await aQuestion("free", "First");
    await aQuestion("mail", "Second");
    const answer = page.getByLabel("Answer", { exact: true });
    const show = async (key: string, title: string): Promise<void> => {
      await page.getByRole("main").focus();
      await page.keyboard.press(key);
      await isSelected(title);
    };
    await open();
    await isSelected("First");
    await answer.fill("red");
    await show("j", "Second");
    await page.getByLabel("to", { exact: true }).fill("bob@example.com");
    await show("k", "First");
    expect(await answer.inputValue()).toBe("red");
    await show("j", "Second");
    await page.getByRole("button", { name: "Undo the changes" }).waitFor();
    expect(await page.getByLabel("to", { exact: true }).inputValue()).toBe("bob@example.com");
    await page.getByRole("button", { name: "Undo the changes" }).click();
    await show("k", "First");
    await page.getByRole("button", { name: "Answer", exact: true }).click();
    await isSelected("Second");
    expect(await answerOf(first)).toBe('Answered: "red"');
    expect(await page.getByRole("button", { name: "Undo the changes" }).count()).toBe(0);
    // The next question of the same task may have the same id.
    expect(
      await page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('answer'))"),
    ).toEqual([]);
  });

  test("stays with the thread that was opened while an answer to another one is on its way", async () => {
    const { page } = shown;
    const first = await aQuestion("free", "First");
    for (const title of ["Second", "Third", "Fourth"]) await aQuestion("free", title);
    await open(`/${first}`);
    await isSelected("First");
    let letGo = (): void => undefined;
    const isHeld = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(`**/threads/${first}/runs`, async (route) => {
      await isHeld;
      await route.continue();
    });
    await page.getByRole("group", { name: "Which colour?" }).getByRole("textbox").fill("red");
    await page.keyboard.press("Control+Enter");
    await thread("Third").click();
    await isSelected("Third");
    letGo();
    await page.getByRole("status").filter({ hasText: "in First" }).waitFor();
    expect(await answerOf(first)).toBe('Answered: "red"');
    await isSelected("Third");
    await page.unrouteAll();
  });

  test("assigns and filters by keys, leaves a text with Escape, and goes on after a thread answered by others", async () => {
    const { page } = shown;
    for (const title of ["First", "Second", "Third"]) await aQuestion("free", title);
    const contested = await aQuestion("free", "Contested");
    await aQuestion("a letter", "Letter", "approval");
    await open();
    await isSelected("First");
    await page.keyboard.press("m");
    await page.getByLabel("Your name").fill("Ada");
    await page.keyboard.press("Enter");
    await thread("First").getByText("Ada").waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search commands" }).fill("unassigned");
    await page.keyboard.press("Enter");
    await eventually("only unassigned ones are listed", async () => (await threads().count()) === 4);

    await shown.go(`/inbox/${contested}`);
    await isSelected("Contested");
    await page.getByLabel("Answer", { exact: true }).fill("red");
    await api.aFinishedRun(contested, { assistant_id: "asking", command: { resume: "blue" } });
    await page.getByText("This thread no longer waits for an answer").waitFor();
    await page.getByText("idle").first().waitFor();
    await thread("Contested").waitFor({ state: "detached" });
    await page.getByRole("main").focus();
    await page.keyboard.press("j");
    await isSelected("Letter");

    await page.keyboard.press("k");
    await isSelected("Third");
    await page.getByLabel("Answer", { exact: true }).fill("green");
    await page.keyboard.press("Escape");
    await page.keyboard.press("k");
    await isSelected("Second");
    await page.getByLabel("Answer", { exact: true }).fill("blue");
    await page.keyboard.press("Control+Enter");
    await isSelected("Third");
    expect(await page.evaluate("document.activeElement?.ariaLabel")).toBe("Selected thread");
  });

  test("keeps what was written if somebody else answers first, and says that a thread is gone", async () => {
    const { page } = shown;
    const threadId = await aQuestion("free", "Contested");
    await open(`/${threadId}`);
    const answer = page.getByLabel("Answer", { exact: true });
    await answer.fill("red");
    await api.aFinishedRun(threadId, { assistant_id: "asking", command: { resume: "blue" } });
    await page.getByText("This thread no longer waits for an answer").waitFor();
    expect(await answer.inputValue()).toBe("red");
    expect(await page.getByRole("button", { name: "Answer", exact: true }).isDisabled()).toBe(true);
    await api.remove(`/threads/${threadId}`);
    await page.getByText("This thread does not exist").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("shows the beginning of a draft of a megabyte, which is edited only on demand, and sends all of it", async () => {
    const { page } = shown;
    const threadId = await aQuestion("draft of megabytes", "Long");
    await open();
    await page.getByText("Edit all 1,140,000 characters").waitFor();
    expect(await page.locator("[data-card] textarea").count()).toBe(0);
    await page.getByRole("button", { name: "Send the draft as it is" }).click();
    await page.getByText("Nothing waits for you").waitFor();
    expect(String(await answerOf(threadId)).length).toBeGreaterThan(1_140_000);
  });

  test("sends no answer to another question than the one that was shown", async () => {
    const { page } = shown;
    const threadId = await aQuestion("twice", "Twice");
    await open(`/${threadId}`);
    await page.getByText("Once?").waitFor();
    await page.getByLabel("Answer", { exact: true }).fill("red");
    await page.route("**/threads/search", async (route) => {
      // The page still sees the first question.
      const { select = [] } = route.request().postDataJSON() as { select?: string[] };
      return select.length > 2 ? route.abort() : route.continue();
    });
    await api.aFinishedRun(threadId, { assistant_id: "asking", command: { resume: "blue" } });
    await page.getByRole("button", { name: "Answer", exact: true }).click();
    await page.getByText("Somebody else has answered already. Your answer was not sent.").waitFor();
    expect(await page.getByLabel("Answer", { exact: true }).inputValue()).toBe("red");
    await page.unroute("**/threads/search");
    await page.getByText("Twice?").waitFor();
  });

  test("assigns threads to people, and filters by them, by graph and by age", async () => {
    const { page } = shown;
    const refund = await aQuestion("free", "Refund");
    await aQuestion("free", "Table");
    await aQuestion("a letter", "Letter", "approval");
    await open(`/${refund}`);
    await page.getByRole("button", { name: "Assign", exact: true }).click();
    await page.getByRole("menuitem", { name: "Assign to me…" }).click();
    await page.getByLabel("Your name").fill("Ada");
    await page.keyboard.press("Enter");
    await thread("Refund").getByText("Ada").waitFor();
    expect((await api.thread(refund)).metadata).toMatchObject({ assignee: "Ada", title: "Refund" });
    await page.getByRole("button", { name: "Mine 1" }).click();
    await eventually("only mine are listed", async () => (await threads().count()) === 1);
    await page.getByRole("button", { name: "Mine 1" }).click();
    await page.getByRole("button", { name: "approval 1" }).click();
    await eventually("one graph is listed", async () =>
      (await threads().allTextContents()).join().includes("Letter"),
    );
    expect(await threads().count()).toBe(1);
    await page.getByRole("button", { name: "approval 1" }).click();
    await page.getByRole("button", { name: "Over an hour 0" }).click();
    await page.getByText("No thread matches").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    // The server finds a thread that is not read yet.
    await page.route("**/threads/search", (route) =>
      route.continue({ postData: { ...(route.request().postDataJSON() as object), limit: 1 } }),
    );
    await page.getByRole("button", { name: "Longest waiting first" }).click();
    await thread("Letter").waitFor();
    expect(await thread("Refund").count()).toBe(0);
    await page.getByRole("button", { name: "Mine", exact: true }).click();
    await thread("Refund").waitFor();
    expect(await threads().count()).toBe(1);
    await page.getByRole("button", { name: "Mine", exact: true }).click();
    await page.unroute("**/threads/search");
    await page.getByRole("button", { name: "Newest first" }).click();
    await page.getByRole("button", { name: "Assigned to Ada" }).click();
    await page.getByRole("menuitem", { name: "Unassign" }).click();
    await page.getByRole("button", { name: "Unassigned 3" }).waitFor();
  });

  test("has no violations and keeps its actions in sight in all windows and colours", async () => {
    const { page } = shown;
    const threadId = await aQuestion("mail", "Refund");
    await aQuestion("long", "Long");
    await open(`/${threadId}`);
    const actions = page.getByRole("group", { name: "send_email" });
    for (const [width, height] of [
      [1440, 900],
      [1280, 720],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await actions.getByRole("button", { name: "Accept" }).waitFor();
        expect(await shown.violations()).toEqual([]);
      }
      for (const name of ["Accept", "Respond", "Ignore"]) {
        const box = await actions.getByRole("button", { name }).boundingBox();
        expect(box !== null && box.y >= 0 && box.y + box.height <= height).toBe(true);
      }
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    }
    // A phone shows the list or the thread.
    expect(await threads().count()).toBe(0);
    await page.getByRole("button", { name: "Back to the list" }).click();
    await thread("Long").waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await thread("Long").click();
    await isSelected("Long");
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  test("says what is wrong if the server does not answer", async () => {
    const { page } = shown;
    await page.route("**/threads/search", (route) => route.fulfill({ status: 403, body: "{}" }));
    await open();
    await page.getByRole("alert").waitFor();
    await page.unroute("**/threads/search");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Nothing waits for you").waitFor();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
