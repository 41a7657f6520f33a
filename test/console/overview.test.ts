import { beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { query } from "../helpers/query.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const INPUT = saying("hello");
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1280, height: 720 },
  { width: 390, height: 844 },
];

describe.skipIf(reasonForNoBrowser() !== undefined)("the overview page", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let api: Api;
  onConsole({ graphConfigFile: GRAPHS }, (opened) => {
    shown = opened;
    api = apiOf(shown.server);
  });
  beforeEach(async () => {
    await query(shown.server, "delete from threadloom.threads");
    await query(shown.server, "delete from threadloom.model_usage");
    await shown.page.unrouteAll();
    await shown.page.emulateMedia({ colorScheme: "light" });
    await shown.go("/queue");
    await shown.page.reload();
  });

  const region = (name: string) => shown.page.getByRole("region", { name, exact: true });
  const figure = async (name: string): Promise<string | undefined> => {
    const terms = await shown.page.getByRole("term").allTextContents();
    return (await shown.page.getByRole("definition").allTextContents())[terms.indexOf(name)];
  };
  const aRunOf = async (graph: string, end: "success" | "error" = "success"): Promise<void> => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: graph, input: INPUT });
    await api.untilRunIs(threadId, run.run_id, end);
  };

  test("says on a server without runs what it will show, and leads to the playground", async () => {
    const { page } = shown;
    await shown.go("/overview");
    await page.getByRole("heading", { name: "No runs yet" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.getByRole("button", { name: "Open the playground" }).click();
    await page.waitForURL(/#\/$|#\/threads/);
  });

  test("sums runs, failures and tokens, and names the failing graph with its error and the way to its runs", async () => {
    const { page } = shown;
    for (const graph of ["agent", "counter", "counter"]) await aRunOf(graph);
    await aRunOf("failing", "error");
    await shown.go("/overview");
    await expect.poll(() => figure("Runs in 24 h")).toBe("4");
    expect(await figure("Failed")).toBe("25 %");
    await expect.poll(() => figure("Running now")).toBe("0");
    await expect.poll(() => figure("Tokens today")).toMatch(/^[1-9]/);
    await page.getByRole("img", { name: /^4 runs in 24 hours, 1 of them failed\. Most: 4, at / }).waitFor();
    await page.getByRole("img", { name: /^\d+ tokens in 30 days\./ }).waitFor();
    await page.getByText("The models have no prices.").waitFor();
    const row = region("Graphs with failed runs").getByRole("row").filter({ hasText: "failing" });
    await row.getByText("This graph always fails.").waitFor();
    expect((await row.getByRole("cell").allTextContents()).slice(0, 4)).toEqual([
      "failing",
      "1",
      "1",
      "100 %",
    ]);
    await region("Graphs by the duration of their runs")
      .getByRole("row")
      .filter({ hasText: "counter" })
      .waitFor();
    await region("Nodes by their own time").getByRole("row").filter({ hasText: "agent" }).first().waitFor();
    await page.getByText("A sample: the newest 4 ended runs.").waitFor();
    await row.getByRole("link").click();
    await page.waitForURL(/#\/runs\?status=error&graph=failing&from=/);
    await page.getByText("1 run", { exact: true }).waitFor();
  });

  test("leads to the runs that timed out beside those that failed, and says that graphs are lacking", async () => {
    const { page } = shown;
    for (let run = 0; run < 2; run += 1) await aRunOf("failing", "error");
    await query(
      shown.server,
      "update threadloom.runs set status = 'timeout' where run_id = (select run_id from threadloom.runs limit 1)",
    );
    await page.route(/\/runs\/summary/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), is_complete: false } });
    });
    await shown.go("/overview");
    await page.getByText("Those with few runs are not listed.").first().waitFor();
    await region("Graphs with failed runs").getByRole("link", { name: "1 timed out" }).click();
    await page.waitForURL(/#\/runs\?status=timeout&graph=failing&from=/);
    await page.getByText("1 run", { exact: true }).waitFor();
  });

  test("shows a chart as a table, and longer ranges, which the address keeps", async () => {
    const { page } = shown;
    await aRunOf("counter");
    await query(shown.server, "delete from threadloom.run_traces");
    await query(shown.server, "update threadloom.runs set created_at = now() - interval '2 days'");
    await query(
      shown.server,
      `update threadloom.runs set run_id = (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0')
         || '7' || substr(md5(random()::text), 1, 19))::uuid`,
    );
    await shown.go("/overview");
    await page.getByRole("group", { name: "Range" }).getByRole("button", { name: "3 d" }).click();
    await expect.poll(() => figure("Runs in 3 d")).toBe("1");
    await page.reload();
    await expect.poll(() => figure("Runs in 3 d")).toBe("1");
    await page.getByRole("button", { name: "Show as table: Runs per hour" }).click();
    const rows = region("Runs per hour, as a table").getByRole("row");
    expect(await rows.count()).toBe(73);
    expect(await rows.getByRole("cell", { name: "1", exact: true }).count()).toBe(1);
    await page.getByRole("button", { name: "Show as chart: Runs per hour" }).click();
    await page.getByRole("img", { name: /^1 run in 72 hours/ }).waitFor();
  });

  test("a section that fails leaves the others, says who may not see it, and can be tried again", async () => {
    const { page } = shown;
    await aRunOf("counter");
    await page.route(/\/usage\?/, (route) =>
      route.fulfill({ status: 403, json: { detail: "Not this one." } }),
    );
    await page.route(/\/runs\/summary/, (route) =>
      route.fulfill({
        status: 422,
        json: { detail: "This takes longer than 2 seconds; narrow the filter." },
      }),
    );
    await shown.go("/overview");
    await page.getByText("You don't have the right to see this. Not this one.").waitFor();
    await region("Runs per hour").getByText("This takes longer than 2 seconds").waitFor();
    await region("Nodes by their own time").waitFor();
    expect(await figure("Runs in 24 h")).toBe("–");
    expect(await shown.violations()).toEqual([]);
    await page.unrouteAll();
    await region("Runs per hour").getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => figure("Runs in 24 h")).toBe("1");
  });

  test("says how to switch traces on if the newest runs have none", async () => {
    await aRunOf("counter");
    await query(shown.server, "delete from threadloom.run_traces");
    await shown.go("/overview");
    await region("Slowest nodes").getByText("TRACES=all").waitFor();
  });

  test("bounds hostile names, models and counts", async () => {
    const { page } = shown;
    const graphs = ["constructor", "__proto__", "<img src=x onerror=alert(1)>", "x".repeat(100_000)].map(
      (graph_id) => ({
        ...{ graph_id, pending: 0, running: 0, success: 1, error: 2, timeout: 0, interrupted: 0 },
        ...{ median_ms: 1e12, p95_ms: 1e15 },
      }),
    );
    const today = new Date().toISOString().slice(0, 10);
    const rows = Array.from({ length: 5_000 }, (_, index) => ({
      ...{ day: today, model: index === 0 ? "constructor" : `model ${index} ${"y".repeat(200)}` },
      ...{ input_tokens: 1e9, output_tokens: 1, cost: null },
    }));
    await page.route(/\/runs\/summary/, (route) =>
      route.fulfill({
        json: { from: `${today}T00:00:00Z`, to: today, hours: [], graphs, is_complete: false },
      }),
    );
    await page.route(/\/usage\?/, (route) =>
      route.fulfill({ json: { from: today, to: today, currency: "constructor", rows, is_complete: false } }),
    );
    await shown.go("/overview");
    await region("Graphs with failed runs").getByText("__proto__").waitFor();
    await page.getByRole("list", { name: "Legend: Tokens by day" }).getByText("Other models").waitFor();
    expect(
      await page.getByRole("list", { name: "Legend: Tokens by day" }).getByRole("listitem").count(),
    ).toBe(5);
    expect(shown.faults).toEqual([]);
  });

  test("has no violations at any size in light and dark, and no page is wider than a phone", async () => {
    const { page } = shown;
    await aRunOf("agent");
    await aRunOf("failing", "error");
    for (const colorScheme of ["light", "dark"] as const)
      for (const size of SIZES) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(size);
        await shown.go("/overview");
        await region("Nodes by their own time").waitFor();
        await region("Graphs with failed runs").getByText("This graph always fails.").waitFor();
        expect([colorScheme, size.width, await shown.violations()]).toEqual([colorScheme, size.width, []]);
        const width = await page.evaluate("document.documentElement.scrollWidth");
        expect(width).toBe(size.width);
      }
  });

  test("draws its charts anew in the colours of the other theme", async () => {
    const { page } = shown;
    await aRunOf("counter");
    await shown.go("/overview");
    const chart = page.getByRole("img", { name: /^1 run in 24 hours/ });
    await chart.waitFor();
    const picture = () => page.evaluate("document.querySelector('canvas').toDataURL()");
    const light = await picture();
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(async () => (await picture()) === light).toBe(false);
  });
});
