import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { feature } from "../../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { reasonForNoBrowser, startPageHost, type PageHost } from "./chromium.ts";

const CONFIG = fileURLToPath(new URL("../../protocols/ui/langgraph.json", import.meta.url));
const KEY = "a-key";
const colourOf = (element: unknown): string =>
  (globalThis as unknown as { getComputedStyle(of: unknown): { color: string } }).getComputedStyle(element)
    .color;

const missing = reasonForNoBrowser();

describe("components of a generative user interface in a page of another origin", () => {
  let server: TestServer;
  let host: PageHost;
  beforeAll(async () => {
    if (missing !== undefined) return;
    server = await startTestServer({ graphConfigFile: CONFIG, apiKeys: [KEY] });
    host = await startPageHost({ entry: "generative.tsx" });
  });
  afterAll(async () => {
    await host?.close();
    await server?.close();
  });

  for (const [what, assistant] of [
    ["by graph id", "two-step"],
    ["by the id of an assistant", "an id"],
  ] as const) {
    feature(
      {
        table: "Components of generative user interfaces, in Chromium",
        row: `\`LoadExternalComponent\` shows one, with its styles and state, ${what}`,
        column: "SDK 1.12.4",
      },
      async (context) => {
        if (missing !== undefined) context.skip(missing);
        const made = await fetch(`${server.url}/assistants`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": KEY },
          body: JSON.stringify({ graph_id: "two-step" }),
        });
        const { assistant_id } = (await made.json()) as { assistant_id: string };
        const id = assistant === "an id" ? assistant_id : assistant;
        const { page, faults } = await host.open({ api: server.url, assistant: id, key: KEY });
        const card = page.getByTestId("card");
        await card.waitFor();
        expect(await card.getByRole("heading").textContent()).toBe(`Card of ${id}`);
        await card.getByRole("button").click();
        await card.getByText("clicked 1 times").waitFor();
        await expect.poll(() => card.evaluate(colourOf)).toBe("rgb(1, 2, 3)");
        expect(await card.getByRole("presentation").getAttribute("src")).toMatch(/^data:image\/svg/);
        expect(await page.getByTestId("plain").textContent()).toBe("just text");
        expect(faults).toEqual([]);
        await host.closeTabs();
      },
    );
  }
});
