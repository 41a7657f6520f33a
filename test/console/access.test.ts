import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { KeyScope } from "../../src/access/caller.ts";
import { hashOf, idOf, makeKey } from "../../src/access/keys/key-text.ts";
import { createKeyRepository, type KeyRepository } from "../../src/access/keys/repository.ts";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { openTestDatabase } from "../helpers/test-database.ts";
import { tabTo } from "./keyboard.ts";
import { onConsole } from "./on-console.ts";

/** Permissions in the console, and accessibility: with the keyboard alone, on a phone, in dark mode. */

const KEY = "canary-19c4-the-key";
const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const PAGES = ["Playground", "Graph", "Assistants", "Overview", "Runs", "Queue", "Crons", "Store"];

/** A closed dialog may still change the address. */
const closeDialogs = async (page: Page): Promise<void> => {
  const dialogs = page.locator("dialog");
  for (let open = await dialogs.count(); open > 0; open -= 1) {
    await page.keyboard.press("Escape");
    await expect.poll(() => dialogs.count()).toBe(open - 1);
  }
};

const signIn = async (page: Page, label: RegExp, key: string): Promise<void> => {
  await page.getByLabel(label).fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation").waitFor();
};
const sendAs = async <Body>(
  { server }: OpenConsole,
  headers: Record<string, string>,
  method: string,
  path: string,
  body?: unknown,
): Promise<Body> => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Body;
};

describe.skipIf(reasonForNoBrowser() !== undefined)("with API keys", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  const byKey = { "x-api-key": KEY };
  onConsole({ apiKeys: [KEY], graphConfigFile: root("langgraph.json") }, (opened) => (shown = opened));

  const withKeys = async <T>(act: (keys: KeyRepository) => Promise<T>): Promise<T> => {
    const database = openTestDatabase(shown.server.connectionString);
    try {
      return await act(createKeyRepository(database));
    } finally {
      await database.close();
    }
  };
  const aKey = async (scopes: KeyScope[], name = "a key"): Promise<string> => {
    const key = makeKey();
    const hash = hashOf(key);
    await withKeys((keys) =>
      keys.insert({ keyId: idOf(hash), keyHash: hash, name, scopes, expiresInSeconds: undefined }),
    );
    await eventually("the key is known", async () => {
      const { status } = await fetch(`${shown.server.url}/openapi.json`, { headers: { "x-api-key": key } });
      return status === 200 || undefined;
    });
    return key;
  };

  test("a key that may only read sees everything, and a change gets the server's message", async () => {
    const { page } = shown;
    const cron = await sendAs<{ cron_id: string }>(shown, byKey, "POST", "/runs/crons", {
      assistant_id: "agent",
      schedule: "0 9 * * *",
      input: {},
    });
    const thread = await sendAs<{ thread_id: string }>(shown, byKey, "POST", "/threads", {});
    const run = await sendAs<{ run_id: string }>(shown, byKey, "POST", `/threads/${thread.thread_id}/runs`, {
      assistant_id: "agent",
      input: { messages: [] },
      after_seconds: 3_600,
    });
    await signIn(page, /API key/, await aKey(["read"]));

    await shown.go("/crons");
    await page
      .locator(`tr[data-cron="${cron.cron_id}"]`)
      .getByRole("button", { name: /^Pause/ })
      .click();
    await page
      .getByRole("alert")
      .getByText(/^This API key may not do that: .* needs the scope '\w+'\.$/)
      .waitFor();
    await page.locator(`tr[data-cron="${cron.cron_id}"]`).getByText("enabled").waitFor();

    await page.getByRole("button", { name: "New cron" }).click();
    const form = page.getByRole("dialog", { name: "New cron" });
    await form.getByRole("button", { name: "Save" }).click();
    await form
      .getByRole("alert")
      .getByText(/needs the scope/)
      .waitFor();
    expect(await shown.violations()).toEqual([]);
    await closeDialogs(page);

    await shown.go("/queue");
    await page.getByRole("button", { name: "Cancel all pending runs" }).click();
    const question = page.getByRole("dialog", { name: /^Cancel the pending run of the queue/ });
    await question.getByRole("button", { name: "Interrupt" }).click();
    await question
      .getByRole("alert")
      .getByText(/needs the scope/)
      .waitFor();
    await question.getByRole("button", { name: "Go back" }).click();

    await shown.go(`/runs?run=${run.run_id}`);
    const main = page.getByRole("main");
    await main.getByText("pending").first().waitFor();
    await main.getByRole("button", { name: "Cancel" }).click();
    const asked = page.getByRole("dialog", { name: "Cancel this run?" });
    await asked.getByRole("button", { name: "Roll back" }).click();
    await asked
      .getByRole("alert")
      .getByText(/needs the scope/)
      .waitFor();
    await closeDialogs(page);

    await shown.go("/");
    await page.getByLabel("Message", { exact: true }).fill("hello");
    await page.keyboard.press("Enter");
    await page
      .getByRole("alert")
      .getByText(/needs the scope/)
      .first()
      .waitFor();

    const still = await sendAs<{ status: string }>(
      shown,
      byKey,
      "GET",
      `/threads/${thread.thread_id}/runs/${run.run_id}`,
    );
    expect(still.status).toBe("pending");
    await page.getByRole("button", { name: "Forget the API key" }).click();
  });

  test("a key that is revoked while the page is open returns the page to the sign-in", async () => {
    const { page } = shown;
    const key = await aKey(["read"], "to be revoked");
    await shown.go("/runs");
    await signIn(page, /API key/, key);
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await withKeys((keys) => keys.revoke(idOf(hashOf(key))));
    await page.getByLabel(/API key/).waitFor();
    await page.getByRole("alert").getByText("The API key is not known to this server.").waitFor();
    expect(await page.getByRole("navigation").count()).toBe(0);
    await page.reload();
    await page.getByLabel(/API key/).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("the keyboard alone signs in, navigates, starts a run, answers its question, and cancels a run", async () => {
    const { page } = shown;
    const { thread_id } = await sendAs<{ thread_id: string }>(shown, byKey, "POST", "/threads", {});
    const { run_id } = await sendAs<{ run_id: string }>(shown, byKey, "POST", `/threads/${thread_id}/runs`, {
      assistant_id: "agent",
      input: { messages: [] },
      after_seconds: 3_600,
    });
    // The field is focused when it appears.
    await page.getByLabel(/API key/).waitFor();
    await page.keyboard.type(KEY);
    await page.keyboard.press("Enter");
    await page.getByRole("navigation").waitFor();

    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await page.locator(`tr[data-run="${run_id}"]`).waitFor();
    await tabTo(page, `…${run_id.slice(-8)}`);
    await page.keyboard.press("Enter");
    const main = page.getByRole("main");
    await main.getByRole("button", { name: "Cancel" }).waitFor();
    await tabTo(page, "Cancel");
    await page.keyboard.press("Enter");
    const question = page.getByRole("dialog", { name: "Cancel this run?" });
    await question.waitFor();
    await tabTo(page, "Interrupt");
    await page.keyboard.press("Enter");
    await question.waitFor({ state: "detached" });
    await main.getByText("interrupted").first().waitFor();

    await tabTo(page, "Playground");
    await page.keyboard.press("Enter");
    const assistant = page.getByLabel("Assistant", { exact: true });
    await assistant.waitFor();
    await tabTo(page, "Assistant");
    await eventually("the approval is chosen", async () => {
      if ((await assistant.locator("option:checked").textContent()) === "approval") return true;
      await page.keyboard.press("ArrowDown");
      return undefined;
    });
    await tabTo(page, "Message");
    await page.keyboard.type("a refund");
    await page.keyboard.press("Enter");
    const waiting = page.getByRole("region", { name: "The graph waits for an answer" });
    await waiting.waitFor();
    await tabTo(page, "approve");
    await page.keyboard.press("Enter");
    await page
      .getByText(/^Sent: /)
      .first()
      .waitFor();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});

describe.skipIf(reasonForNoBrowser() !== undefined)("with a project's own Auth", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  onConsole({ graphConfigFile: root("test/access/users/langgraph.json") }, (opened) => (shown = opened));

  test("two users with bearer tokens see only their own data, and not the queue", async () => {
    const runs = new Map<string, string>();
    for (const name of ["alice", "bob"]) {
      const headers = { authorization: `Bearer ${name}-token` };
      const { thread_id } = await sendAs<{ thread_id: string }>(shown, headers, "POST", "/threads", {});
      const run = await sendAs<{ run_id: string }>(shown, headers, "POST", `/threads/${thread_id}/runs`, {
        assistant_id: "agent",
        input: { messages: [] },
        after_seconds: 3_600,
      });
      runs.set(name, run.run_id);
      await sendAs(shown, headers, "POST", "/runs/crons", {
        assistant_id: "agent",
        schedule: name === "alice" ? "1 1 * * *" : "2 2 * * *",
        input: {},
      });
    }
    const { browser, server } = shown;
    for (const [name, other, schedule] of [
      ["alice", "bob", "1 1 * * *"],
      ["bob", "alice", "2 2 * * *"],
    ] as const) {
      const page = await (await browser.newContext()).newPage();
      const place = (path: string) => page.goto(`${server.url}/console/#${path}`);
      await place("/runs");
      await page.getByLabel(/token/).fill("wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").getByText("Show who you are.").waitFor();
      await signIn(page, /token/, `${name}-token`);
      await page.locator(`tr[data-run="${runs.get(name)}"]`).waitFor();
      expect(await page.locator("tr[data-run]").count()).toBe(1);
      await place(`/runs?run=${runs.get(other)}`);
      await page.getByRole("heading", { name: "This run does not exist" }).waitFor();
      await place("/crons");
      await page.getByText(schedule).waitFor();
      expect(await page.locator("tr[data-cron]").count()).toBe(1);
      await place("/queue");
      await page
        .getByRole("alert")
        .getByText(/^The queue of this server shows what everybody has/)
        .waitFor();
      const waiting = page.getByRole("region", { name: "Pending runs" });
      await waiting.waitFor();
      await expect.poll(() => waiting.getByRole("row").count()).toBe(2);
      await page.context().close();
    }
  });

  test("a second user in the same page never sees data of the first, not even for a moment", async () => {
    const { browser, server } = shown;
    const headers = { authorization: "Bearer alice-token" };
    const { thread_id } = await sendAs<{ thread_id: string }>(shown, headers, "POST", "/threads", {});
    const run = await sendAs<{ run_id: string }>(shown, headers, "POST", `/threads/${thread_id}/runs`, {
      assistant_id: "agent",
      input: { messages: [] },
      after_seconds: 3_600,
    });
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${server.url}/console/#/`);
    await signIn(page, /token/, "alice-token");
    await page.getByRole("textbox", { name: "Message" }).fill("a draft of Alice");
    const stored = (): Promise<string> => page.evaluate("JSON.stringify({ ...sessionStorage })");
    expect(await stored()).toContain("a draft of Alice");
    await page.goto(`${server.url}/console/#/runs`);
    await page.locator(`tr[data-run="${run.run_id}"]`).waitFor();
    await page.getByRole("button", { name: "Forget the token" }).click();
    // Requests get no answer any more, so visible data was there before.
    await page.route("**/runs/search", () => undefined);
    await signIn(page, /token/, "bob-token");
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    expect(await page.locator("tr[data-run]").count()).toBe(0);
    expect(await stored()).not.toContain("Alice");
    await page.context().close();
  });
});

describe.skipIf(reasonForNoBrowser() !== undefined)("on a phone in dark mode", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  onConsole(
    {
      graphConfigFile: root("langgraph.json"),
      context: { viewport: { width: 390, height: 844 }, colorScheme: "dark", reducedMotion: "reduce" },
    },
    (opened) => (shown = opened),
  );

  test("no page is wider than the screen, shifts its layout, or violates a rule of axe", async () => {
    const { page } = shown;
    await sendAs(shown, {}, "POST", "/runs/crons", {
      assistant_id: "agent",
      schedule: "0 9 * * *",
      input: {},
    });
    const { thread_id } = await sendAs<{ thread_id: string }>(shown, {}, "POST", "/threads", {});
    for (let count = 0; count < 3; count += 1) {
      await sendAs(shown, {}, "POST", `/threads/${thread_id}/runs`, {
        assistant_id: "agent",
        input: { messages: [] },
        after_seconds: 3_600,
      });
    }
    const seen: unknown[] = [];
    for (const name of PAGES) {
      const link = page.getByRole("navigation").getByRole("link", { name });
      if ((await link.count()) > 0) await link.click();
      else {
        await page.getByRole("button", { name: "More", exact: true }).click();
        await page.getByRole("menuitem", { name }).click();
      }
      await expect.poll(() => page.title()).toBe(`${name} – Threadloom`);
      await page.getByRole("main").getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined);
      const sizes = await page.evaluate(`({
        page: document.documentElement.scrollWidth <= innerWidth,
        main: document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth,
        moving: document.getAnimations().filter((one) => one.playState === "running").length,
      })`);
      seen.push({ name, ...(sizes as object), violations: await shown.violations() });
    }
    expect(seen).toEqual(PAGES.map((name) => ({ name, page: true, main: true, moving: 0, violations: [] })));
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
