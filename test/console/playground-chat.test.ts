import { describe, expect, test } from "vitest";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const usage = (total_tokens: number) => ({
  usage_metadata: { input_tokens: 1, output_tokens: total_tokens - 1, total_tokens },
  response_metadata: { model_name: "gpt-5-mini" },
});

const ANSWER = [
  "Euler wrote $e^{i\\pi}+1=0$, which costs $5 or $6.",
  "",
  "```typescript",
  "export const answer = 42;",
  "```",
].join("\n");

const call = (id: string, name: string) => ({ id, name, args: { of: id } });
const result = (id: string, content: string, more = {}) => ({
  ...{ type: "tool", id: `result ${id}`, tool_call_id: id, content },
  ...more,
});

const TURNS = [
  {
    type: "human",
    id: "asked",
    content: [
      { type: "text", text: "What did Euler write?" },
      {
        ...{ type: "file", source_type: "base64", mime_type: "application/pdf", data: btoa("%PDF-1.4") },
        metadata: { filename: "letter.pdf" },
      },
    ],
  },
  { type: "ai", id: "answered", content: ANSWER, ...usage(1_907) },
  { type: "human", id: "asked again", content: "And the weather?" },
  { type: "ai", id: "first", content: "", tool_calls: [call("a", "look"), call("b", "look")] },
  result("a", "sun"),
  result("b", "no such city", { status: "error" }),
  { type: "ai", id: "second", content: "", tool_calls: [call("c", "count")], ...usage(10) },
  result("c", "7"),
  { type: "ai", id: "answered again", content: "It is sunny.", ...usage(20) },
];

describe.skipIf(reasonForNoBrowser() !== undefined)("the chat of a thread", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  onConsole(
    { graphConfigFile: GRAPHS, context: { viewport: { width: 1400, height: 900 } } },
    (opened) => (shown = opened),
  );
  const { messages, say, begin } = playgroundOf(() => shown);
  const box = () => shown.page.getByLabel("Message", { exact: true });
  const focusedBox = () => box().and(shown.page.locator(":focus"));

  const aThread = async (input: unknown): Promise<string> => {
    const { client } = shown.server;
    const thread = (await client.post("/threads").send({ metadata: { graph_id: "anything" } })).body as {
      thread_id: string;
    };
    await client.post(`/threads/${thread.thread_id}/runs/wait`).send({ assistant_id: "anything", input });
    return thread.thread_id;
  };

  test("shows coloured code with its language, formulas, prices as they are, and files with name and size", async () => {
    const { page } = shown;
    await shown.go(`/threads/${await aThread({ messages: TURNS })}`);
    const answer = messages().filter({ hasText: "Euler wrote" });
    await answer.locator(".hljs-keyword").first().waitFor();
    await answer.getByText("typescript", { exact: true }).waitFor();
    await answer.getByRole("button", { name: "Copy code" }).waitFor();
    await answer.locator("math").waitFor();
    expect(await answer.textContent()).toContain("which costs $5 or $6.");
    const file = messages().first().getByRole("group", { name: "File letter.pdf" });
    expect(await file.textContent()).toContain("application/pdf · 8 B");
    const download = page.waitForEvent("download");
    await file.getByRole("button", { name: "Download letter.pdf" }).click();
    expect((await download).suggestedFilename()).toBe("letter.pdf");
    expect(await shown.violations()).toEqual([]);
  });

  test("folds the steps of tools into one line, which says that one has failed", async () => {
    const steps = messages().locator("details[data-steps]");
    expect(await steps.locator("> summary").textContent()).toBe("3 steps: look, count · 1 failed");
    expect(await messages().count()).toBe(5);
    await steps.locator("> summary").click();
    const failed = steps.locator("details[data-tool=look]").nth(1);
    expect(await failed.locator("[data-status]").textContent()).toBe("error");
    await failed.locator("> summary").click();
    await failed.getByText("no such city").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("shows model, time and tokens of a whole turn under its answer, linked to the run", async () => {
    const figures = messages().last().getByRole("link");
    await expect.poll(() => figures.textContent()).toMatch(/^gpt-5-mini · .* (ms|s) · 30 tokens$/);
    const threadId = shown.page.url().split("/").at(-1) ?? "";
    const { body } = await shown.server.client.get(`/threads/${threadId}/runs`);
    const [run] = body as { run_id: string }[];
    expect(await figures.getAttribute("href")).toBe(`#/runs/${run?.run_id ?? ""}`);
    // Two turns of one input: the run of the older answer is unknown.
    const older = messages().filter({ hasText: "Euler wrote" });
    await older.getByText("gpt-5-mini · 1,907 tokens", { exact: true }).waitFor();
    expect(await older.getByRole("link").count()).toBe(0);
  });

  test("finds words in all messages by Ctrl+F, steps through them, and gives the focus back", async () => {
    const { page } = shown;
    const many = Array.from({ length: 200 }, (_, index) => ({
      type: index % 2 === 0 ? "human" : "ai",
      id: `message ${index}`,
      content: index % 50 === 7 ? `A needle, number ${index}.` : `Hay ${index}.`,
    }));
    await shown.go(`/threads/${await aThread({ messages: many })}`);
    await messages().getByText("Hay 199.").waitFor();
    await box().focus();
    await page.keyboard.press("Control+f");
    const bar = page.getByRole("search", { name: "Find in this thread" });
    await bar.getByLabel("Words to find").fill("NEEDLE");
    await bar.getByText("1 of 4").waitFor();
    await messages().getByText("A needle, number 7.").waitFor();
    await page.keyboard.press("Enter");
    await bar.getByText("2 of 4").waitFor();
    await messages().getByText("A needle, number 57.").waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.press("Shift+Enter");
    await bar.getByText("4 of 4").waitFor();
    await messages().getByText("A needle, number 157.").waitFor();
    await page.keyboard.press("Escape");
    await bar.waitFor({ state: "detached" });
    await focusedBox().waitFor();
  });

  test("keeps the text of a stopped run, marks it, and does not start the next message", async () => {
    const { page } = shown;
    await begin("typing");
    await say("Type.");
    await messages()
      .getByText(/token40/)
      .waitFor();
    await say("And then?");
    await page.getByRole("region", { name: "Queued messages" }).getByText("And then?").waitFor();
    await box().focus();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
    const stopped = messages().filter({ hasText: "token40" });
    await stopped.getByText("Stopped · not stored").waitFor();
    const held = page.getByRole("region", { name: "Messages not sent" });
    await held.getByText("And then?").waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.reload();
    await held.getByRole("button", { name: "Send “And then?”" }).click();
    await messages().getByText("And then?").waitFor();
    await held.waitFor({ state: "detached" });
    await messages()
      .getByText(/token40/)
      .waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  });

  test("keeps drafts over a reload, and recalls earlier messages by the arrows", async () => {
    const { page } = shown;
    await begin("agent");
    await focusedBox().waitFor();
    await box().fill("A draft");
    await shown.go("/runs");
    await begin("agent");
    expect(await box().inputValue()).toBe("A draft");
    await say("one");
    await messages()
      .getByText(/^You said: "one"/)
      .waitFor();
    await say("two");
    await messages()
      .getByText(/^You said: "two"/)
      .waitFor();
    await box().press("ArrowUp");
    expect(await box().inputValue()).toBe("two");
    await box().press("ArrowUp");
    expect(await box().inputValue()).toBe("one");
    await box().press("ArrowDown");
    await box().press("ArrowDown");
    expect(await box().inputValue()).toBe("");
    await box().fill("Another draft");
    await page.reload();
    await expect.poll(() => box().inputValue()).toBe("Another draft");
    await messages().first().getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Edited message").fill("three");
    await page.keyboard.press("Control+Enter");
    await messages()
      .getByText(/^You said: "three"/)
      .waitFor();
    await begin("agent");
    expect(await box().inputValue()).toBe("");
  });

  test("loses no first message if the page is left right after it", async () => {
    const { client } = shown.server;
    await begin("counter");
    await begin("agent");
    await say("Left at once");
    await shown.go("/runs");
    await expect
      .poll(async () => {
        const { body } = await client
          .post("/threads/search")
          .send({ limit: 1, extract: { first: "values.messages[0].content" } });
        return (body as { extracted?: { first?: unknown } }[])[0]?.extracted?.first;
      })
      .toBe("Left at once");
    expect(shown.page.url()).toContain("#/runs");
  });

  test("attaches a PDF and a text, and says which file it does not take", async () => {
    const { page } = shown;
    await begin("showing");
    const files = page.getByLabel("Files", { exact: true });
    await files.setInputFiles([
      { name: "letter.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4") },
      { name: "notes.md", mimeType: "", buffer: Buffer.from("# Notes") },
    ]);
    await page.getByRole("list", { name: "Files to send" }).getByText("notes.md").waitFor();
    await files.setInputFiles({ name: "all.zip", mimeType: "application/zip", buffer: Buffer.from("zip") });
    await page
      .getByRole("alert")
      .getByText("“all.zip” can't be attached. A message takes images, PDFs and text files.")
      .waitFor();
    expect(await shown.violations()).toEqual([]);
    await say("Read these.");
    await messages().getByText("Blocks: text, file, file.").waitFor();
    await messages().first().getByRole("group", { name: "File letter.pdf" }).waitFor();
  });

  test("offers an assistant's questions to begin with, which fill the box", async () => {
    const { page, server } = shown;
    const { body } = await server.client.post("/assistants").send({
      graph_id: "agent",
      name: "With starters",
      metadata: { starters: ["What is new?", 7, "", "What is new?", "x".repeat(9_000)] },
    });
    await page.reload();
    await shown.go(`/?assistant=${(body as { assistant_id: string }).assistant_id}`);
    const starters = page.getByRole("list", { name: "Questions to begin with" });
    await starters.getByRole("button", { name: "What is new?" }).waitFor();
    expect(await starters.getByRole("button").count()).toBe(1);
    expect(await shown.violations()).toEqual([]);
    await starters.getByRole("button").click();
    expect(await box().inputValue()).toBe("What is new?");
    await focusedBox().waitFor();
    const own = await server.client
      .patch("/assistants/agent")
      .send({ metadata: { starters: ["Of the graph?"] } });
    expect(own.status).toBe(200);
    const other = await server.client
      .post("/assistants")
      .send({ graph_id: "agent", name: "Without starters" });
    await page.reload();
    await shown.go(`/?assistant=${(other.body as { assistant_id: string }).assistant_id}`);
    await starters.getByRole("button", { name: "Of the graph?" }).waitFor();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
