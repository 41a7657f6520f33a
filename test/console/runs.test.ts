import { beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { query } from "../helpers/query.ts";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

const COUNT = { assistant_id: "counter", input: saying("hello") };
const FAIL = { assistant_id: "failing", input: saying("hello"), metadata: { shift: "late", origin: "mcp" } };
const SLEEP = { assistant_id: "sleep", input: { milliseconds: 600_000 } };

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of runs", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let api: Api;
  onConsole({}, (opened) => {
    shown = opened;
    api = apiOf(shown.server);
  });
  beforeEach(async () => {
    await api.post("/runs/cancel", { status: "all" });
    await eventually("nothing runs", async () => {
      const { body } = await api.get<{ num_running: number }>("/queue");
      return body.num_running === 0 || undefined;
    });
    await query(shown.server, "delete from threadloom.threads");
    // A selection, a pause or a hovering pointer of one test would hold back new runs in the next one.
    await shown.page.mouse.move(0, 0);
    await shown.page.reload();
  });

  const aRun = async (fields: object = COUNT, ...ends: ("success" | "error")[]) => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, fields);
    return ends.length === 0 ? run : await api.untilRunIs(threadId, run.run_id, ...ends);
  };
  const row = (runId: string) => shown.page.locator(`tr[data-run="${runId}"]`);

  test("lists runs of all threads with their status, graph, duration, attempts, and error in one line", async () => {
    const [good, bad] = [await aRun(COUNT, "success"), await aRun(FAIL, "error")];
    await shown.go("/runs");
    await row(good.run_id).waitFor();
    const cells = await row(bad.run_id).getByRole("cell").allTextContents();
    expect([cells[1], cells[3]]).toEqual(["error", "failing"]);
    expect(cells[6]).toMatch(/^[\d.]+ m?s$/);
    expect(cells[7]).toBe("1");
    expect(cells[8]).toMatch(/: This graph always fails\.$/);
    await shown.page.getByText("2 runs", { exact: true }).waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("shows new runs live while no person interacts, and their duration", async () => {
    await aRun(COUNT, "success");
    await shown.go("/runs");
    await shown.page.getByText("1 run", { exact: true }).waitFor();
    const run = await aRun(SLEEP);
    await row(run.run_id).getByText("running").waitFor();
    const duration = async () => (await row(run.run_id).getByRole("cell").allTextContents())[6];
    const before = await duration();
    await eventually("the duration goes on", async () => ((await duration()) !== before ? true : undefined));
    await api.cancel(run.thread_id, run.run_id);
    await row(run.run_id).getByText("interrupted").waitFor();
  });

  test("holds new runs behind a button while a person interacts, and shifts nothing", async () => {
    const first = await aRun(COUNT, "success");
    await shown.go("/runs");
    await row(first.run_id).getByRole("link").first().focus();
    const before = await row(first.run_id).boundingBox();
    const second = await aRun(COUNT, "success");
    const button = shown.page.getByRole("button", { name: "Show 1 new run" });
    await button.waitFor();
    expect(await row(second.run_id).count()).toBe(0);
    expect(await row(first.run_id).boundingBox()).toEqual(before);
    await button.click();
    await row(second.run_id).waitFor();
    expect(await button.count()).toBe(0);
  });

  test("sends no request while it is paused, and continues after that", async () => {
    await aRun(COUNT, "success");
    const page = await shown.browser.newPage();
    await page.clock.install();
    await page.goto(`${shown.server.url}/console/#/runs`);
    await page.getByText("1 run", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused").waitFor();
    await page.waitForLoadState("networkidle");
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/runs/search")) asked += 1;
    });
    await page.clock.fastForward("01:00");
    expect(asked).toBe(0);
    const run = await aRun(COUNT, "success");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.clock.fastForward("01:00");
    await page.locator(`tr[data-run="${run.run_id}"]`).waitFor();
    expect(asked).toBeGreaterThan(0);
    await page.close();
  });

  test("filters by status, graph, assistant, thread and time, and has the filter in its address", async () => {
    const [good, bad, other] = [
      await aRun(COUNT, "success"),
      await aRun(FAIL, "error"),
      await aRun({ ...COUNT, metadata: { other: true } }, "success"),
    ];
    const { page } = shown;
    await shown.go("/runs");
    const filter = page.getByRole("button", { name: "Filter", exact: true });
    await page.getByRole("button", { name: "error", exact: true }).click();
    // The previous list may also have contained one run.
    await row(bad.run_id).waitFor();
    await row(good.run_id).waitFor({ state: "detached" });
    await page.getByText("1 run", { exact: true }).waitFor();
    expect(page.url()).toMatch(/#\/runs\?status=error$/);
    await page.getByRole("button", { name: "Show all runs" }).click();
    await page.getByText("3 runs", { exact: true }).waitFor();
    await filter.click();
    await page.getByLabel("Graph", { exact: true }).selectOption("counter");
    await page.getByText("2 runs", { exact: true }).waitFor();
    await page.getByLabel("Thread", { exact: true }).fill(other.thread_id);
    await page.keyboard.press("Enter");
    await page.getByText("1 run", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    // Another tab, which opens the same address.
    const address = page.url();
    await shown.go("/crons");
    await page.goto(address);
    await row(other.run_id).waitFor();
    await page.getByText("Graph: counter").waitFor();
    expect(await row(good.run_id).count()).toBe(0);
    await page.getByRole("button", { name: "Show all runs" }).click();
    await filter.click();
    await page.getByLabel("Assistant", { exact: true }).fill("failing");
    await page.keyboard.press("Enter");
    await page.getByText("1 run", { exact: true }).waitFor();
    await page.getByLabel("Assistant", { exact: true }).fill("");
    await page.getByLabel("Metadata", { exact: true }).fill("shift=late");
    await page.keyboard.press("Enter");
    await page.getByText("Metadata: shift=late").waitFor();
    await row(good.run_id).waitFor({ state: "detached" });
    expect(await row(bad.run_id).count()).toBe(1);
    await page.getByLabel("Metadata", { exact: true }).fill("");
    await page.keyboard.press("Enter");
    await page.getByText("Metadata: shift=late").waitFor({ state: "detached" });
    await page.getByLabel("To", { exact: true }).fill("2020-01-01T00:00");
    await page.getByText("No runs match.").waitFor();
    expect(page.url()).toMatch(/to=20(19-12-31|20-01-01)T/);
    await page.keyboard.press("Escape");
    await page.getByLabel("To", { exact: true }).waitFor({ state: "detached" });
    expect(await shown.violations()).toEqual([]);
    await page.getByRole("button", { name: "Show all runs" }).click();
    await page.getByText("3 runs", { exact: true }).waitFor();
  });

  test("shows the server's message for an invalid filter", async () => {
    await shown.go("/runs?thread=constructor");
    await shown.page
      .getByRole("alert")
      .getByText(/thread_id/)
      .waitFor();
    await shown.go("/runs?status=__proto__");
    await shown.page
      .getByRole("alert")
      .getByText(/status/)
      .waitFor();
  });

  test("opens a run from its row and by keyboard alone, and an older address of a run", async () => {
    const [older, newer] = [await aRun(COUNT, "success"), await aRun(COUNT, "success")];
    const { page } = shown;
    const isAt = (runId: string) => page.waitForURL((url) => url.hash === `#/runs/${runId}`);
    await shown.go("/runs");
    await row(older.run_id).getByText("success").click();
    await isAt(older.run_id);
    await shown.go("/runs");
    await row(newer.run_id).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("1 run selected").waitFor();
    expect(await page.getByLabel(`Select run ${older.run_id}`).isChecked()).toBe(true);
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await isAt(newer.run_id);
    await shown.go(`/runs?run=${older.run_id}`);
    await isAt(older.run_id);
  });

  test("shows rows as cards on a phone, and nothing is wider than the screen", async () => {
    const bad = await aRun(FAIL, "error");
    const { page } = shown;
    await page.setViewportSize({ width: 390, height: 844 });
    await shown.go("/runs");
    await row(bad.run_id).waitFor();
    expect(await page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")).toBe(true);
    expect(await shown.violations()).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  test("cancels several at once, with rollback, after a confirmation with their number, and deletes several", async () => {
    const [first, second, ended] = [await aRun(SLEEP), await aRun(SLEEP), await aRun(COUNT, "success")];
    await shown.go("/runs");
    // A selection counts as interaction, so the other runs would be held back.
    await shown.page.getByText("3 runs", { exact: true }).waitFor();
    for (const { run_id } of [first, second, ended])
      await shown.page.getByLabel(`Select run ${run_id}`).check();
    await shown.page.getByText("3 runs selected").waitFor();
    expect(await shown.violations()).toEqual([]);
    await shown.page.getByRole("button", { name: "Cancel 2" }).click();
    await shown.page
      .getByRole("dialog", { name: "Cancel 2 runs?" })
      .getByRole("button", { name: "Roll back" })
      .click();
    await row(first.run_id).waitFor({ state: "detached" });
    await row(second.run_id).waitFor({ state: "detached" });
    await shown.page.getByLabel("Select all runs").check();
    await shown.page.getByRole("button", { name: "Delete 1" }).click();
    await shown.page
      .getByRole("dialog", { name: "Delete 1 run?" })
      .getByRole("button", { name: "Delete" })
      .click();
    await shown.page.getByText("No runs yet.").waitFor();
  });

  test("deletes several although one is already gone and one is refused, and names the rest", async () => {
    const { page } = shown;
    const [gone, refused, deleted] = [
      await aRun(COUNT, "success"),
      await aRun(COUNT, "success"),
      await aRun(COUNT, "success"),
    ];
    await shown.go("/runs");
    await page.getByText("3 runs", { exact: true }).waitFor();
    for (const { run_id } of [gone, refused, deleted]) await page.getByLabel(`Select run ${run_id}`).check();
    await page.getByRole("button", { name: "Pause" }).click();
    await api.remove(`/threads/${gone.thread_id}/runs/${gone.run_id}`);
    await page.route(`**/runs/${refused.run_id}`, (route) =>
      route.fulfill({ status: 403, json: { detail: "This key may not delete." } }),
    );
    await page.getByRole("button", { name: "Delete 3" }).click();
    await page
      .getByRole("dialog", { name: "Delete 3 runs?" })
      .getByRole("button", { name: "Delete" })
      .click();
    await page.getByRole("alert").getByText("1 run of 3 not deleted: This key may not delete.").waitFor();
    await row(deleted.run_id).waitFor({ state: "detached" });
    await row(gone.run_id).waitFor({ state: "detached" });
    expect(await page.getByLabel(`Select run ${refused.run_id}`).isChecked()).toBe(true);
    expect(await shown.violations()).toEqual([]);
    await page.unroute(`**/runs/${refused.run_id}`);
    await page.getByRole("button", { name: "Delete 1" }).click();
    await page.getByRole("dialog", { name: "Delete 1 run?" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("No runs yet.").waitFor();
  });

  test("continues after the end of a page, although new runs arrive between pages", async () => {
    const { page } = shown;
    const [older, newer] = [await aRun(COUNT, "success"), await aRun(COUNT, "success")];
    const pages: string[][] = [];
    await page.route("**/runs/search", async (route) => {
      if (pages.length === 2) return await route.continue();
      const asked = route.request().postDataJSON() as { cursor?: string; limit: number };
      const isFirst = asked.cursor === undefined;
      // Simulates a page that ended early because of its size.
      const answer = await route.fetch({ postData: { ...asked, limit: isFirst ? 1 : asked.limit } });
      pages.push(((await answer.json()) as { run_id: string }[]).map(({ run_id }) => run_id));
      if (isFirst) await aRun(COUNT, "success");
      await route.fulfill({ response: answer });
    });
    await shown.go("/runs");
    for (const { run_id } of [older, newer]) await row(run_id).waitFor();
    expect(pages).toEqual([[newer.run_id], [older.run_id]]);
    await page.unroute("**/runs/search");
  });

  test("shows more on request, and hostile names and errors as text", async () => {
    const [template] = [await aRun(FAIL, "error")];
    await query(
      shown.server,
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, error, attempt, started_at)
       select gen_random_uuid(), thread_id, assistant_id, '<img src=x onerror=alert(1)>', status, kwargs, multitask_strategy,
         jsonb_build_object('error', 'constructor', 'message', repeat('<script>long</script> ', 2000), '__proto__', 'more'), attempt, now()
       from threadloom.runs, generate_series(1, 119) where run_id = $1`,
      [template.run_id],
    );
    const { page } = shown;
    await shown.go("/runs");
    await page.getByText("50 shown of 120", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("100 shown of 120", { exact: true }).waitFor();
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.getByRole("row").nth(1).getByRole("link").first().click();
    await page
      .getByText(/<script>long/)
      .first()
      .waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(await shown.violations()).toEqual([]);
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
