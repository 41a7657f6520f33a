import { describe, expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

const KEY = "canary-77aa-the-key";

describe.skipIf(reasonForNoBrowser() !== undefined)("the console in Chromium", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  onConsole({ apiKeys: [KEY] }, (opened) => (shown = opened));

  test("asks for a key if the server needs one, and explains a wrong one", async () => {
    const { page } = shown;
    await page.getByLabel(/API key/).fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("The API key is not known to this server.").waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await page.getByRole("navigation").count()).toBe(0);
  });

  test("says why a server refuses the caller if no key is needed", async () => {
    const page = await shown.browser.newPage();
    const detail = "This server has no API keys, so it is called by the names of this machine only.";
    await page.route("**/console/caller", (route) => route.fulfill({ status: 403, json: { detail } }));
    await page.goto(`${shown.server.url}/console/`);
    await page.getByRole("alert").getByText(detail).waitFor();
    await page.close();
  });

  test("keeps the key for the session of the tab, until it is removed", async () => {
    const { page, browser, server } = shown;
    await page.getByLabel(/API key/).fill(KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation").waitFor();
    await page.reload();
    await page.getByRole("navigation").waitFor();
    expect(page.url()).not.toContain(KEY);
    const another = await browser.newPage();
    await another.goto(`${server.url}/console`);
    await another.getByLabel(/API key/).waitFor();
    await another.close();
    await page.getByRole("button", { name: "Forget the API key" }).click();
    await page.getByLabel(/API key/).fill(KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation").waitFor();
  });

  /** Tall enough for the navigation with words. */
  const SIZES = [
    { width: 1440, height: 900 },
    { width: 1280, height: 720 },
    { width: 390, height: 844 },
  ];

  test("has every page in its navigation, each with its title and without violations of axe, light and dark, at every width", async () => {
    const { page } = shown;
    const links = page.getByRole("navigation").getByRole("link");
    await page.setViewportSize(SIZES[0]!);
    const places = await links.evaluateAll((all) =>
      all.map((link) => [link.getAttribute("title") ?? "", link.getAttribute("href") ?? ""] as const),
    );
    expect(places.length).toBeGreaterThan(6);
    for (const theme of ["Light colours", "Dark colours"]) {
      await page.setViewportSize(SIZES[0]!);
      while ((await page.getByRole("button", { name: theme }).count()) === 0)
        await page.getByRole("button", { name: /colours$/ }).click();
      for (const size of SIZES) {
        await page.setViewportSize(size);
        for (const [name, place] of places) {
          await shown.go(place.replace(/^#/, ""));
          await expect.poll(() => page.title()).toBe(`${name} – Threadloom`);
          await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
          const [violations, isTooWide] = [
            await shown.violations(),
            await page.evaluate("document.documentElement.scrollWidth > innerWidth"),
          ];
          expect({ theme, size, name, violations, isTooWide }).toEqual({
            ...{ theme, size, name },
            ...{ violations: [], isTooWide: false },
          });
        }
      }
    }
    await page.setViewportSize(SIZES[1]!);
  });

  test("reaches every page on a phone, the less used ones by a menu", async () => {
    const { page } = shown;
    await page.setViewportSize(SIZES[2]!);
    await page.getByRole("navigation").getByRole("link", { name: "Runs" }).click();
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await page.getByRole("button", { name: "More", exact: true }).click();
    expect(await shown.violations()).toEqual([]);
    await page.getByRole("menuitem", { name: "Crons" }).click();
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Crons" }).waitFor();
    await page.setViewportSize(SIZES[1]!);
  });

  test("starts every command from a palette, and lists the keys", async () => {
    const { page } = shown;
    await shown.go("/runs");
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByLabel("Search commands").fill("store");
    await page.getByRole("option", { name: "Go to Store" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Store" }).waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("main").focus();
    await page.keyboard.press("Shift+?");
    const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await keys.getByText("Show all commands").waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.keyboard.press("Escape");
    await keys.waitFor({ state: "detached" });
  });

  test("goes to a recent thread from the palette", async () => {
    const { page, server } = shown;
    const { body } = await server.client
      .post("/threads")
      .set("x-api-key", KEY)
      .send({ metadata: { title: "About the blue loom" } });
    await shown.go("/runs");
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByLabel("Search commands").fill("blue loom");
    await page.getByRole("option", { name: "About the blue loom" }).waitFor();
    await page.keyboard.press("Enter");
    const { thread_id: threadId } = body as { thread_id: string };
    await expect.poll(() => new URL(page.url()).hash).toBe(`#/threads/${threadId}`);
    await page.getByRole("heading", { level: 1, name: "About the blue loom" }).waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("leaves keys to a text that is being written", async () => {
    const { page } = shown;
    await shown.go("/");
    const search = page.getByLabel("Search threads");
    await search.fill("");
    await search.press("n");
    await search.press("?");
    expect(await search.inputValue()).toBe("n?");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await search.fill("");
  });

  test("recognises a page by its path, whatever its query", async () => {
    const { page } = shown;
    await shown.go("/runs?status=error&unknown=%3F");
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Runs", exact: true }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/runs");
    expect(new URL(page.url()).search).toBe("");
  });

  test("reloads if a file is missing, for example while a balancer serves two versions", async () => {
    const { page } = shown;
    const missing = [
      /\/assets\/index-[^/]*\.js$/,
      /\/assets\/index-[^/]*\.css$/,
      /\/assets\/store-page-[^/]*\.js$/,
    ];
    for (const file of missing) {
      await page.route(file, (route) => route.fulfill({ status: 404, json: { detail: "gone" } }), {
        times: 1,
      });
    }
    await page.reload();
    // A click during the reload has no effect.
    const link = page.getByRole("navigation").getByRole("link", { name: "Store", exact: true });
    const heading = page.getByRole("main").getByRole("heading", { level: 1, name: "Store" });
    await eventually("the store is shown", async () => {
      await link.click({ timeout: 5_000 }).catch(() => undefined);
      return await heading.isVisible().catch(() => false);
    });
  });

  test("reloads once if two parts are missing at the same time", async () => {
    const { page } = shown;
    // The previous test's page may be about to reload.
    await page.goto("about:blank");
    await shown.go("/runs");
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    const isLoaded = page.waitForEvent("load");
    // A round requests its first file when it begins.
    const rounds = await page.evaluate(`(() => {
      const { fetch } = window;
      let asked = 0;
      window.fetch = (address) => ((asked += 1), fetch(address));
      for (let part = 0; part < 2; part += 1) dispatchEvent(new Event("threadloom:unloaded"));
      return asked;
    })()`);
    await isLoaded;
    expect(rounds).toBe(1);
  });

  test("says what to do if a page still can't be loaded after some tries", async () => {
    const { page } = shown;
    const isOfStore = (url: URL): boolean => /\/assets\/store-page-.*\.js$/.test(url.pathname);
    // The previous test's page may be about to reload.
    await page.goto("about:blank");
    await shown.go("/");
    await page.getByRole("navigation").getByRole("link", { name: "Runs", exact: true }).click();
    await page.reload();
    await page.evaluate(`sessionStorage.setItem("threadloom-loads", "12 " + Date.now())`);
    await page.route(isOfStore, (route) => route.fulfill({ status: 404, json: { detail: "gone" } }));
    await page.getByRole("navigation").getByRole("link", { name: "Store", exact: true }).click();
    await page.getByRole("alert").getByText("runs another version now").waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.unroute(isOfStore);
    await page.getByRole("button", { name: "Reload the page" }).click();
    await page.getByRole("main").getByRole("heading", { level: 1, name: "Store" }).waitFor();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});

describe("the page at /console", () => {
  const statusOf = async (options: Parameters<typeof startTestServer>[0], path = "/console/") => {
    const server = await startTestServer(options);
    try {
      return (await fetch(`${server.url}${path}`, { redirect: "manual" })).status;
    } finally {
      await server.close();
    }
  };

  test("is never served from a cache of another version, nor is a file that a version lacks", async () => {
    const server = await startTestServer({});
    try {
      const page = await fetch(`${server.url}/console/`);
      expect(await page.text()).toContain("The page has not loaded yet");
      const named = ["cache-control", "etag", "last-modified"].map((name) => page.headers.get(name));
      expect(named).toEqual(["no-cache", null, null]);
      const none = await fetch(`${server.url}/console/assets/index-of-another-version.js`);
      expect([none.status, none.headers.get("cache-control")]).toEqual([404, "no-store"]);
      const signIn = await fetch(`${server.url}/console/sign-in.json`);
      expect(signIn.headers.get("cache-control")).toBe("no-cache");
    } finally {
      await server.close();
    }
  });

  test("does not exist beyond loopback without authentication", async () => {
    expect(await statusOf({ host: "0.0.0.0", unsafeNoAuth: false, apiKeys: [KEY] })).toBe(200);
    expect(await statusOf({ host: "0.0.0.0", unsafeNoAuth: true })).toBe(404);
  });
});
