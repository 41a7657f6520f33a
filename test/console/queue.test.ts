import { beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

const COUNT = { assistant_id: "counter", input: saying("hello") };
const SLEEP = { assistant_id: "sleep", input: { milliseconds: 600_000 } };
const LATER = { after_seconds: 3_600 };

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of the queue", { timeout: SLOW_MS }, () => {
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
  });

  const pendingOf = async (threadId: string): Promise<number> =>
    (await api.runs(threadId)).filter(({ status }) => status === "pending").length;
  const figure = async (name: string): Promise<string | undefined> => {
    const terms = await shown.page.getByRole("term").allTextContents();
    return (await shown.page.getByRole("definition").allTextContents())[terms.indexOf(name)];
  };
  const rowOf = (table: string, text: string) =>
    shown.page.getByRole("region", { name: table, exact: true }).getByRole("row").filter({ hasText: text });

  test("says that no run waits, and lists the servers", async () => {
    await shown.go("/queue");
    await shown.page.getByText("No run is pending or running.").waitFor();
    await shown.page.getByText("No pending runs.").waitFor();
    await rowOf("Servers", "(this one)").getByText("0 of 10").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("shows waiting runs by graph and thread, the longest wait, running runs, and their servers", async () => {
    const [busy, other] = [await api.aThread(), await api.aThread()];
    await api.aRun(busy, SLEEP);
    const first = await api.aRun(busy, COUNT);
    await api.aRun(busy, COUNT);
    const later = await api.aRun(other, { ...SLEEP, ...LATER });
    await query(
      shown.server,
      `update threadloom.runs set created_at = now() - interval '150 seconds', available_at = now() - interval '125 seconds'
       where run_id = $1`,
      [first.run_id],
    );
    await shown.go("/queue");
    // The page may have been open, and have read the queue before the times changed.
    await rowOf("By graph", "counter")
      .getByText(/^2 min/)
      .waitFor();
    const cells = async (table: string, text: string) =>
      (await rowOf(table, text).getByRole("cell").allTextContents()).slice(0, 4);
    expect(await cells("By graph", "counter")).toEqual([
      "counter",
      "2",
      "0",
      expect.stringMatching(/^2 min \d+ s$/),
    ]);
    expect(await cells("By graph", "sleep")).toEqual(["sleep", "1", "1", "–"]);
    expect((await cells("By thread", busy.slice(-8)))[2]).toBe("2");
    expect(await figure("Pending")).toBe("3");
    expect(await figure("Of these, for later")).toBe("1");
    expect(await figure("Running")).toBe("1");
    expect(await figure("Slots of this server")).toBe("1 of 10");
    expect(await figure("Oldest pending for")).toMatch(/^2 min \d+ s$/);
    await rowOf("Pending runs", later.run_id.slice(-8))
      .getByText(/due in (1 hour|\d+ minutes)/)
      .waitFor();
    await rowOf("Pending runs", first.run_id.slice(-8)).getByText("waits for its thread or a slot").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("recovers by itself after an outage of the database", async () => {
    const { page } = shown;
    await shown.go("/queue");
    await page.getByText("No run is pending or running.").waitFor();
    const isAway = (url: URL): boolean => url.pathname === "/queue" || url.pathname === "/runs/search";
    const detail = "The database can't be used at the moment.";
    await page.route(isAway, (route) => route.fulfill({ status: 503, json: { detail } }));
    await expect.poll(() => page.getByText(detail).count(), { timeout: SLOW_MS }).toBe(2);
    await page.unroute(isAway);
    await expect.poll(() => page.getByText(detail).count(), { timeout: SLOW_MS }).toBe(0);
  });

  test("shows graphs without a server", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...COUNT, ...LATER });
    await query(shown.server, "update threadloom.runs set graph_id = '<b>gone</b>' where run_id = $1", [
      run.run_id,
    ]);
    await shown.go("/queue");
    await rowOf("By graph", "<b>gone</b>").getByText("none").waitFor();
  });

  test("cancels one run, those of a thread, those of a graph, and all, each after a confirmation with their number", async () => {
    const threads = [await api.aThread(), await api.aThread(), await api.aThread()];
    for (const thread of threads) {
      await api.aRun(thread, { ...COUNT, ...LATER });
      await api.aRun(thread, { ...SLEEP, ...LATER });
    }
    const single = await api.aRun(threads[0]!, { ...SLEEP, ...LATER });
    const { page } = shown;
    await shown.go("/queue");
    const answer = async (question: string | RegExp, button: string): Promise<void> => {
      const dialog = page.getByRole("dialog", { name: question });
      await dialog.getByRole("button", { name: button }).click();
      await dialog.waitFor({ state: "hidden" });
    };
    await page.getByRole("button", { name: `Cancel run ${single.run_id}` }).click();
    await answer("Cancel the run?", "Roll back");
    expect((await api.get(`/threads/${threads[0]}/runs/${single.run_id}`)).status).toBe(404);

    await page.getByRole("button", { name: `Cancel 2 on thread ${threads[1]}` }).click();
    await answer(/^Cancel 2 pending runs of the thread/, "Interrupt");
    expect(await pendingOf(threads[1]!)).toBe(0);
    expect(await pendingOf(threads[0]!)).toBe(2);

    await page.getByRole("button", { name: "Cancel 2 of sleep" }).click();
    await answer("Cancel 2 pending runs of the graph sleep?", "Go back");
    expect(await pendingOf(threads[0]!)).toBe(2);
    await page.getByRole("button", { name: "Cancel 2 of sleep" }).click();
    await answer("Cancel 2 pending runs of the graph sleep?", "Interrupt");
    expect([await pendingOf(threads[0]!), await pendingOf(threads[2]!)]).toEqual([1, 1]);

    await page.getByRole("button", { name: "Cancel all pending runs" }).click();
    await answer("Cancel 2 pending runs of the queue?", "Interrupt");
    expect([await pendingOf(threads[0]!), await pendingOf(threads[2]!)]).toEqual([0, 0]);
    await page.getByText("No pending runs.").waitFor();
  });

  test("shows waiting runs again after an outage of the server", async () => {
    const { page } = shown;
    await shown.go("/queue");
    await page.getByText("No run is pending or running.").waitFor();
    const isAway = (url: URL): boolean => ["/queue", "/runs/search"].includes(url.pathname);
    await page.route(isAway, (route) => route.fulfill({ status: 503, json: { message: "It is away." } }));
    await page.getByRole("alert").nth(1).waitFor();
    const threadId = await api.aThread();
    await api.aRun(threadId, { ...COUNT, ...LATER });
    await page.unroute(isAway);
    await rowOf("By graph", "counter").waitFor();
    await rowOf("Pending runs", threadId.slice(-8)).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
