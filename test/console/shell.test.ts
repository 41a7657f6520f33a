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

  test("has every page in its navigation, each with its title and without violations of axe, light and dark", async () => {
    const { page } = shown;
    const names = await page.getByRole("navigation").getByRole("link").allTextContents();
    expect(names.length).toBeGreaterThan(6);
    for (const theme of ["Light", "Dark"]) {
      await page.getByLabel("Colours").selectOption({ label: theme });
      for (const name of names.filter((one) => one !== "API")) {
        await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
        await expect.poll(() => page.title()).toBe(`${name} – Threadloom`);
        await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
        expect({ theme, name, violations: await shown.violations() }).toEqual({
          theme,
          name,
          violations: [],
        });
      }
    }
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

  test("is gone with --no-console", async () => {
    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ noConsole: true })).toBe(404);
  });

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
