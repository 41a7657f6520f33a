import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { launchBrowser, reasonForNoBrowser } from "./chromium.ts";

const KEY = "canary-3f7a-the-key";
/** Swagger UI draws all operations, three times here: 35 s on a busy machine. */
const SLOW_MS = 120_000;
const missing = reasonForNoBrowser();

describe.skipIf(missing !== undefined)("the page /docs in Chromium, of a server with API keys", () => {
  let server: TestServer;
  let browser: Browser;
  let page: Page;
  const asked: { url: string; key: string | undefined }[] = [];
  beforeAll(async () => {
    server = await startTestServer({ apiKeys: [KEY] });
    browser = await launchBrowser();
    page = await browser.newPage();
    page.on("request", (request) => asked.push({ url: request.url(), key: request.headers()["x-api-key"] }));
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("asks for a key, and shows nothing of the API before that", async () => {
    await page.goto(server.url);
    expect(new URL(page.url()).pathname).toBe("/docs");
    await page.waitForSelector("#api-key-form");
    expect(await page.locator("#swagger-ui .opblock").count()).toBe(0);
    await page.fill("#api-key", "wrong");
    await page.click("#api-key-form button");
    await expect
      .poll(() => page.textContent("#api-key-refused"))
      .toBe("The server does not know this API key.");
    expect(await page.locator("#swagger-ui .opblock").count()).toBe(0);
  });

  test(
    "uses the key for the document and to try operations, for the session of the tab",
    async () => {
      await page.fill("#api-key", KEY);
      await page.click("#api-key-form button");
      await page.waitForSelector("#swagger-ui .opblock");
      expect(await page.locator("#api-key-form").count()).toBe(0);
      await page.reload();
      await page.waitForSelector("#swagger-ui .opblock");

      const operation = page.locator(".opblock", { has: page.locator('[data-path="/queue"]') });
      await operation.locator(".opblock-summary").click();
      await operation.getByRole("button", { name: "Try it out" }).click();
      await operation.getByRole("button", { name: "Execute", exact: true }).click();
      await operation.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
      expect(asked.find(({ url }) => url === `${server.url}/queue`)?.key).toBe(KEY);
      expect(asked.filter(({ url, key }) => key !== undefined && !url.startsWith(server.url))).toEqual([]);
      expect(page.url()).not.toContain(KEY);
      const another = await browser.newPage();
      await another.goto(`${server.url}/docs`);
      await another.waitForSelector("#api-key-form");
      await another.close();
    },
    SLOW_MS,
  );

  test("writes no key to the log", () => {
    expect(server.lines.filter((line) => line.includes("canary"))).toEqual([]);
  });
});

test.skipIf(missing !== undefined)(
  "of a server with an Auth the page asks for a token, and sends it as one",
  async () => {
    const graphConfigFile = fileURLToPath(new URL("../../access/users/langgraph.json", import.meta.url));
    const server = await startTestServer({ graphConfigFile });
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      const shown: (string | undefined)[] = [];
      page.on("request", (request) => shown.push(request.headers().authorization));
      await page.goto(`${server.url}/docs`);
      await page.waitForSelector("#api-key-form");
      expect(await page.textContent("#api-key-form label")).toBe(
        "This server wants the token (Authorization):",
      );
      await page.fill("#api-key", "Basic YTpi");
      await page.click("#api-key-form button");
      await expect.poll(() => page.textContent("#api-key-refused")).not.toBe("");
      expect(shown).toContain("Basic YTpi");
      await page.fill("#api-key", "alice-token");
      await page.click("#api-key-form button");
      await page.waitForSelector("#swagger-ui .opblock");
      expect(shown).toContain("Bearer alice-token");
    } finally {
      await browser.close();
      await server.close();
    }
  },
  SLOW_MS,
);

test.skipIf(missing !== undefined)(
  "without keys the page shows the API at once",
  async () => {
    const server = await startTestServer();
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(`${server.url}/docs`);
      await page.waitForSelector("#swagger-ui .opblock");
      expect(await page.locator("#api-key-form").count()).toBe(0);
    } finally {
      await browser.close();
      await server.close();
    }
  },
  SLOW_MS,
);
