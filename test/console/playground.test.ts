import { describe, expect, test } from "vitest";
import type { Request } from "playwright-core";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8Dwn4GBgYGJgYGBgQEAEAoCAfwuVAAAAAAASUVORK5CYII=",
  "base64",
);

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "a conversation in the playground",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole(
      {
        graphConfigFile: GRAPHS,
        context: { viewport: { width: 1400, height: 900 } },
      },
      (opened) => (shown = opened),
    );

    const { messages, say, begin } = playgroundOf(() => shown);

    test("creates a thread from the first message, and shows the answer with its tool calls and their results", async () => {
      const { page } = shown;
      await begin("agent");
      await say("What is the weather in Paris?");
      await page.waitForURL(/#\/threads\/[0-9a-f-]{36}$/);
      await messages()
        .last()
        .getByText(/^It is .* in Paris, .* °C\.$/)
        .waitFor();
      const tool = page.locator("details[data-tool=get_weather]");
      expect(await tool.locator("[data-status]").textContent()).toBe("success");
      await tool.locator("> summary").click();
      await tool
        .locator("p")
        .getByText(/It is .* in Paris/)
        .waitFor();
      expect(await shown.violations()).toEqual([]);
    });

    test("continues the thread after a reload, and shows its state", async () => {
      const { page } = shown;
      await page.reload();
      await messages().getByText("What is the weather in Paris?").waitFor();
      await say("I am here again.");
      await messages()
        .getByText(/^You said: "I am here again\."/)
        .waitFor();
      await page
        .getByRole("complementary", { name: "State, graph and timeline" })
        .getByText("6 items")
        .waitFor();
    });

    test("shows tokens live; stops; shows where the graph stopped, and continues from there", async () => {
      const { page } = shown;
      await begin("typing");
      await say("Type.");
      await messages()
        .getByText(/token40/)
        .waitFor();
      expect(await messages().last().textContent()).not.toContain("token500");
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("The graph has stopped before model.").waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByRole("button", { name: "Stop" }).waitFor();
    });

    test("joins a running run when the page is opened again, and queues the next message", async () => {
      const { page } = shown;
      await messages()
        .getByText(/token40/)
        .waitFor();
      await page.reload();
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await messages()
        .getByText(/token0 .*token59/)
        .first()
        .waitFor();
      await say("And again.");
      await page.getByRole("region", { name: "Queued messages" }).getByText("And again.").waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByRole("button", { name: "Send “And again.”" }).click();
      await messages().getByText("And again.").waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("The graph has stopped before model.").waitFor();
    });

    test("shows blocks, own images, reasoning and formatted text; executes and loads none of it", async () => {
      const { page } = shown;
      await begin("showing");
      await page
        .getByLabel("Files", { exact: true })
        .setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: PICTURE });
      await page.getByRole("img", { name: "dot.png" }).waitFor();
      await say("Look!");
      await messages().getByText("Blocks: text, image.").waitFor();
      const answer = messages().filter({ hasText: "A heading" });
      await answer.getByText("Reasoning").click();
      await answer.getByText("First I think.").waitFor();
      expect(await answer.getByRole("table").count()).toBe(1);
      expect(await answer.getByRole("img").count()).toBe(1);
      expect(await answer.locator("strong").textContent()).toBe("bold");
      expect(await answer.locator("script, b").count()).toBe(0);
      expect(await answer.getByRole("link").allTextContents()).toEqual([
        "Image: a spy",
        "a page",
        "Image: https://spy.example/other.png",
      ]);
      expect(await answer.getByRole("link", { name: "a page" }).getAttribute("rel")).toBe(
        "noopener noreferrer",
      );
      await messages().getByRole("button", { name: "More of 200,006 characters" }).waitFor();
      expect(await page.evaluate("window.stolen")).toBeUndefined();
      expect(await shown.violations()).toEqual([]);
    });

    test("shows why a run failed, also after a reload, and retries it", async () => {
      const { page } = shown;
      await begin("failing");
      await say("Go!");
      await page.getByRole("alert").getByText("This graph always fails.").waitFor();
      await page.reload();
      await page.getByRole("alert").getByText("This graph always fails.").waitFor();
      expect(await shown.violations()).toEqual([]);
      const runs = async (): Promise<number> =>
        (
          (await shown.server.client.get(`/threads/${page.url().split("/").at(-1) ?? ""}/runs`))
            .body as unknown[]
        ).length;
      const before = await runs();
      await page.getByRole("button", { name: "Try again" }).click();
      await expect.poll(runs).toBe(before + 1);
      await page.getByRole("alert").getByText("This graph always fails.").waitFor();
    });

    test("shows why a run failed also if the state is read slowly", async () => {
      const { page, server } = shown;
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      const state = /\/threads\/[^/]+\/state(\?.*)?$/;
      const asked = page.waitForRequest(state);
      await page.route(state, async (route) => {
        await released;
        await route.fulfill({ response: await route.fetch() });
      });
      await begin("failing");
      await say("Go!");
      const threadId = /threads\/([^/]+)\/state/.exec((await asked).url())?.[1] ?? "";
      // After its third poll of the record the page has done everything that precedes reading the state.
      for (let look = 0; look < 3; look += 1) await page.waitForResponse(/\/threads\/search$/);
      await eventually("no run goes on", async () => {
        const { body } = await server.client.get(`/threads/${threadId}/runs`);
        return (body as { status: string }[]).every(({ status }) => status === "error");
      });
      release();
      await messages().getByText("prepared").waitFor();
      await page.getByRole("alert").getByText("This graph always fails.").waitFor();
      await page.unrouteAll({ behavior: "wait" });
    });

    test("reads a new thread once, and shows its first run live", async () => {
      const { page } = shown;
      const size = page.viewportSize();
      // Without the state panel, which reads the state, too.
      await page.setViewportSize({ width: 1_000, height: 900 });
      let reads = 0;
      const count = (request: Request): void => {
        if (/\/threads\/[^/]+\/state$/.test(request.url())) reads += 1;
      };
      page.on("request", count);
      await begin("held");
      await say("hello");
      await messages().getByText("the first answer").waitFor();
      expect(reads).toBe(1);
      await eventually("the graph waits at the gate", () => openGate() === 1 || undefined);
      await messages().getByText("the second answer").waitFor();
      page.off("request", count);
      if (size !== null) await page.setViewportSize(size);
    });

    test("accepts an input as a form of the graph's schema, and as JSON", async () => {
      const { page } = shown;
      await begin("typing");
      await page.getByRole("button", { name: "Form" }).click();
      await page.getByLabel(/tokens/i).fill("3");
      expect(await shown.violations()).toEqual([]);
      await page.getByRole("region", { name: "Input" }).getByRole("button", { name: "Send" }).click();
      await messages().getByText("token0 token1 token2").waitFor();
      await begin("typing");
      await page.getByRole("button", { name: "JSON" }).click();
      await page.getByLabel("Input as JSON").fill("{");
      expect(await page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
      await page.getByLabel("Input as JSON").fill('{"tokens": 2}');
      await page.getByRole("button", { name: "Send" }).click();
      await messages().getByText("token0 token1").waitFor();
    });

    test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
