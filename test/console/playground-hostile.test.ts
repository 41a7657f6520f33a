import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

/** 2 x 2 pixels. */
const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8Dwn4GBgYGJgYGBgQEAEAoCAfwuVAAAAAAASUVORK5CYII=",
  "base64",
);

/** A graph may store anything, and people click twice. */
describe.skipIf(reasonForNoBrowser() !== undefined)(
  "the playground with unexpected data",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole({ graphConfigFile: GRAPHS }, (opened) => (shown = opened));

    const ask = async <Answer>(method: string, path: string, body?: unknown): Promise<Answer> => {
      const answer = await fetch(`${shown.server.url}${path}`, {
        method,
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return (await answer.json()) as Answer;
    };
    const aThread = async (assistant: string, input: unknown): Promise<string> => {
      const metadata = { graph_id: assistant };
      const { thread_id } = await ask<{ thread_id: string }>("POST", "/threads", { metadata });
      await ask("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: assistant, input });
      return thread_id;
    };
    const runsOf = async (thread: string) => (await ask<unknown[]>("GET", `/threads/${thread}/runs`)).length;
    const messages = () => shown.page.getByRole("log", { name: "Messages" });

    test("shows messages with invalid fields", async () => {
      const thread = await aThread("anything", {
        messages: [
          { type: "human", id: "one", content: "first" },
          {
            type: "ai",
            id: "two",
            name: { first: 1 },
            content: "second",
            tool_calls: [
              { name: "look", args: {} },
              { id: "call", name: "ask" },
            ],
          },
          { type: "tool", id: "three", tool_call_id: "call", status: { code: 1 }, content: "third" },
        ],
      });
      await shown.go(`/threads/${thread}`);
      await messages().getByText("second", { exact: true }).waitFor();
      const steps = shown.page.locator("details[data-steps='2']");
      await steps.locator("> summary").click();
      await expect.poll(() => steps.locator("details[data-tool]").count()).toBe(2);
    });

    test("returns input that the server refuses: a too large message, or one sent too often", async () => {
      const { page } = shown;
      const box = page.getByLabel("Message", { exact: true });
      await shown.go("/?assistant=anything");
      await page.getByRole("heading", { level: 2, name: "anything" }).waitFor();
      await box.fill("x".repeat(5_000_000));
      await page.getByRole("button", { name: "Send", exact: true }).click();
      const refusal = page.getByRole("main").getByRole("alert");
      await refusal.getByText("The body is larger than 4.19 MB, the most that this route takes.").waitFor();
      await eventually("it can be shortened", async () => (await box.inputValue()).length === 5_000_000);
      expect(await messages().count()).toBe(0);
      // A line without a space must not push the button out of the window.
      const { x, width } = (await page.getByRole("button", { name: "Send", exact: true }).boundingBox())!;
      expect(x + width).toBeLessThan(page.viewportSize()!.width);
      await box.fill("short");
      await page.route(
        "**/commands",
        (route) =>
          route.fulfill({ status: 429, headers: { "retry-after": "7" }, json: { detail: "Too often." } }),
        { times: 1 },
      );
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await refusal.getByText("Too often. Try again in 7 seconds.").waitFor();
      await eventually("it is in the box again", async () => (await box.inputValue()) === "short");
      expect(await shown.violations()).toEqual([]);
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await messages().getByText("short", { exact: true }).waitFor();
      await expect.poll(() => box.inputValue()).toBe("");
    });

    test("marks an invalid message, shows the others, and names the invalid one before it is sent", async () => {
      const { page } = shown;
      const odd = [null, 3, "text", [1], {}, { type: "hologram", id: "odd", content: "A hologram" }];
      const thread = await aThread("anything", {
        messages: [...odd, { type: "human", id: "last", content: "A message" }],
      });
      await shown.go(`/threads/${thread}`);
      await messages().getByText("A message", { exact: true }).waitFor();
      await messages().getByText("A hologram").waitFor();
      const said = messages().getByText("This value of the graph is not a message: ");
      expect(await said.allTextContents()).toEqual(
        ["null", "3", '"text"', "[1]", "{}"].map(
          (json) => `This value of the graph is not a message: ${json}`,
        ),
      );
      // Also while they arrive.
      await page.getByRole("button", { name: "JSON", exact: true }).click();
      await page.getByLabel("Input as JSON").fill('{"messages":[null,{"type":"ai","content":"Live"}]}');
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await messages().getByText("Live").waitFor();
      await shown.go("/?assistant=agent");
      await page.getByRole("heading", { level: 2, name: "agent" }).waitFor();
      await page.getByRole("button", { name: "JSON", exact: true }).click();
      await page.getByLabel("Input as JSON").fill('{"messages":["hello",null]}');
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByRole("alert").getByText("Message 2 is null. A message is a text").waitFor();
      expect(page.url()).toContain("#/?assistant=agent");
    });

    test("shows texts as plain text if they are nested too deeply for formatting", async () => {
      const texts = [
        "[".repeat(20_000),
        ">".repeat(20_000),
        `${"- ".repeat(10_000)}x`,
        "*a_ ".repeat(10_000),
      ];
      const thread = await aThread("anything", {
        messages: texts.map((content, index) => ({ type: "ai", id: `nested ${index}`, content })),
      });
      await shown.go(`/threads/${thread}`);
      await messages().getByText("*a_ *a_").waitFor();
    });

    test("sends every image of several that are pasted at once", async () => {
      const { page } = shown;
      await shown.go("/?assistant=showing");
      await page.getByRole("heading", { level: 2, name: "showing" }).waitFor();
      await page.evaluate(`(() => {
        const field = document.querySelector("textarea");
        for (const name of ["one.png", "two.png", "three.png"]) {
          const clipboardData = new DataTransfer();
          const bytes = new Uint8Array([${[...PICTURE].join(", ")}]);
          clipboardData.items.add(new File([bytes], name, { type: "image/png" }));
          field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
        }
      })()`);
      await page.getByRole("img", { name: "three.png" }).waitFor();
      await page.getByLabel("Message", { exact: true }).press("Enter");
      await messages().getByText("Blocks: image, image, image.").waitFor();
    });

    test("shows the beginning of names of thousands of characters, and stays within its window", async () => {
      const { page } = shown;
      const name = "x".repeat(5_000);
      const { assistant_id } = await ask<{ assistant_id: string }>("POST", "/assistants", {
        graph_id: "anything",
        name,
      });
      const width = page.viewportSize()?.width ?? 0;
      await shown.go("/");
      // The previous list may still be cached.
      await page.reload();
      const choice = page.getByLabel("Assistant", { exact: true });
      await choice.locator("option", { hasText: "xxx" }).waitFor({ state: "attached" });
      const box = await choice.boundingBox();
      expect((box?.x ?? 0) + (box?.width ?? Infinity)).toBeLessThanOrEqual(width);
      await shown.go("/assistants");
      await page.getByRole("link", { name: /^x{120}…$/ }).click();
      await page.getByRole("heading", { level: 1, name: /^x{120}…$/ }).waitFor();
      await ask("DELETE", `/assistants/${assistant_id}`).catch(() => undefined);
    });

    test("reports a failed run although a step of its thread is due, and does not wait for it", async () => {
      const thread = await aThread("anything", { messages: [], unstorable: true });
      await shown.go(`/threads/${thread}`);
      await shown.page
        .getByRole("alert")
        .getByText(/can't be stored/)
        .waitFor();
      await shown.page.getByRole("button", { name: "Send", exact: true }).waitFor();
      expect(await shown.page.getByRole("button", { name: "Stop" }).count()).toBe(0);
    });

    test("treats a double click as one: a JSON input creates one thread and one run, an answer is regenerated once", async () => {
      const { page } = shown;
      const before = await ask<number>("POST", "/threads/count", {});
      await shown.go("/?assistant=counter");
      await page.getByRole("heading", { level: 2, name: "counter" }).waitFor();
      await page.getByRole("button", { name: "JSON", exact: true }).click();
      await page.getByRole("button", { name: "Send", exact: true }).dblclick();
      await page.waitForURL(/#\/threads\/[0-9a-f-]{36}$/);
      const thread = page.url().replace(/.*\//, "");
      await eventually("the run has ended", async () => {
        const [run] = await ask<{ status: string }[]>("GET", `/threads/${thread}/runs`);
        return run?.status === "success" || undefined;
      });
      expect([await ask("POST", "/threads/count", {}), await runsOf(thread)]).toEqual([before + 1, 1]);

      const said = await aThread("agent", { messages: [{ type: "human", content: "hello" }] });
      await shown.go(`/threads/${said}`);
      await page.getByRole("button", { name: "Regenerate" }).dblclick();
      await page.getByRole("group", { name: "Branches" }).getByText("2/2").waitFor();
      expect(await runsOf(said)).toBe(2);
    });

    test("sends nothing twice if a proxy does not know whether it was done, and reads the result", async () => {
      const { page } = shown;
      const thread = await aThread("agent", { messages: [{ type: "human", content: "hello" }] });
      await shown.go(`/threads/${thread}`);
      await messages().getByText("hello", { exact: true }).waitFor();
      await page.route("**/commands", async (route) => {
        await route.fetch();
        await route.fulfill({ status: 504, contentType: "text/html", body: "<h1>504 Gateway Time-out</h1>" });
      });
      await page.getByLabel("Message", { exact: true }).fill("once");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("The server answered with HTTP 504.").waitFor();
      await page.unroute("**/commands");
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("alert").waitFor({ state: "detached" });
      await messages()
        .getByText(/^You said: "once"/)
        .waitFor();
      expect(await messages().getByText("once", { exact: true }).count()).toBe(1);
      expect(await runsOf(thread)).toBe(2);
    });

    test("reports a foreign page sent as an answer by a proxy, and reads again when that is gone", async () => {
      const { page } = shown;
      const asked = /\/(runs|assistants)\/search$/;
      await page.route(asked, (route) =>
        route.fulfill({ status: 200, contentType: "text/html; charset=utf-8", body: "<h1>Sign in</h1>" }),
      );
      for (const place of ["/runs", "/assistants"]) {
        await shown.go("/queue");
        await page.reload();
        await shown.go(place);
        await page
          .getByRole("alert")
          .getByText(/^A proxy answered in place of the server/)
          .first()
          .waitFor();
      }
      await page.unroute(asked);
      await page.getByRole("alert").waitFor({ state: "detached" });
    });

    test("retries a stream that could not be opened for as long as a server takes to restart", async () => {
      const { page } = shown;
      const thread = await aThread("agent", { messages: [{ type: "human", content: "hello" }] });
      await shown.go(`/threads/${thread}`);
      await messages().getByText("hello", { exact: true }).waitFor();
      let tries = 0;
      await page.route("**/stream/events", (route) => {
        tries += 1;
        return tries > 12 ? route.continue() : tries % 2 ? route.abort() : route.fulfill({ status: 502 });
      });
      await page.getByLabel("Message", { exact: true }).fill("again");
      await page.keyboard.press("Enter");
      await messages()
        .getByText(/^You said: "again"/)
        .waitFor();
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      await page.unroute("**/stream/events");
    });

    test("shows unreadable data by itself, once the data can be read", async () => {
      const { page } = shown;
      const bad = { status: 502, contentType: "text/html", body: "<h1>502 Bad Gateway</h1>" };
      await page.route("**/assistants/search", (route) => route.fulfill(bad));
      await page.reload();
      await shown.go("/assistants");
      await page.getByRole("alert").getByText("The server answered with HTTP 502.").waitFor();
      await page.unroute("**/assistants/search");
      await page.getByRole("link", { name: "anything" }).first().waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
    });

    test("has thrown no error", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
