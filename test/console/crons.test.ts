import { beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { query } from "../helpers/query.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

interface Cron {
  cron_id: string;
  thread_id: string | null;
  schedule: string;
  timezone: string | null;
  enabled: boolean;
  end_time: string | null;
  on_run_completed: string | null;
  metadata: Record<string, unknown>;
  payload: Record<string, unknown>;
}

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of crons", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let api: Api;
  onConsole({}, (opened) => {
    shown = opened;
    api = apiOf(shown.server);
  });
  beforeEach(() => query(shown.server, "delete from threadloom.crons"));

  const crons = async (): Promise<Cron[]> => (await api.post<Cron[]>("/runs/crons/search", {})).body;
  const aCron = async (fields: object = {}, path = "/runs/crons"): Promise<Cron> =>
    (await api.post<Cron>(path, { assistant_id: "counter", schedule: "0 9 * * 1-5", input: {}, ...fields }))
      .body;
  const row = (cronId: string) => shown.page.locator(`tr[data-cron="${cronId}"]`);

  test("says that there are none", async () => {
    await shown.go("/crons");
    await shown.page.getByText("There are no crons.").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("lists crons with their schedule in words, time zone, next run, assistant and thread", async () => {
    const threadId = await api.aThread();
    const weekly = await aCron({ timezone: "Europe/Berlin" });
    const onThread = await aCron({ schedule: "@daily", enabled: false }, `/threads/${threadId}/runs/crons`);
    await shown.go("/crons");
    await row(weekly.cron_id).getByText("At 09:00, Monday through Friday").waitFor();
    const [schedule, next, assistant, thread, state] = await row(weekly.cron_id)
      .getByRole("cell")
      .allTextContents();
    expect(schedule).toContain("Europe/Berlin");
    expect(next).toMatch(/^(in \d+ |tomorrow)/);
    expect([assistant, thread, state]).toEqual(["counter", "new for each run", "enabled"]);
    const second = await row(onThread.cron_id).getByRole("cell").allTextContents();
    expect([second[1], second[3], second[4]]).toEqual(["none", `…${threadId.slice(-8)}`, "paused"]);
    await shown.page.getByText("2 crons", { exact: true }).waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("counts the days until the next run by the calendar of the cron", async () => {
    const { page } = shown;
    const cron = await aCron({ schedule: "0 8 * * 1", timezone: "Pacific/Auckland" });
    const [{ next_run_date: next }] = (await api.post<{ next_run_date: string }[]>("/runs/crons/search", {}))
      .body as [{ next_run_date: string }];
    await shown.go("/crons");
    const HOUR_MS = 3_600_000;
    for (const [hours, words] of [
      [35, "in 2 days"],
      [31, "tomorrow"],
      [23, "in 23 hours"],
    ] as const) {
      // Saturday 21:00, Sunday 01:00, Sunday 09:00 in Auckland.
      await page.clock.setFixedTime(Date.parse(next) - hours * HOUR_MS);
      await page.reload();
      const time = row(cron.cron_id).locator("time");
      await expect.poll(() => time.textContent()).toBe(words);
      expect(await time.getAttribute("title")).toMatch(/, 08:00:00 Pacific\/Auckland$/);
    }
    await page.clock.setFixedTime(new Date());
    await page.clock.resume();
  });

  test("creates one: the words follow the input, and a refusal is shown beside it", async () => {
    const { page } = shown;
    await shown.go("/crons");
    await page.getByRole("button", { name: "New cron" }).click();
    const form = page.getByRole("dialog", { name: "New cron" });
    await form.getByLabel("Schedule").fill("*/15 * * * *");
    await form.getByText("Every 15 minutes").waitFor();
    expect(await shown.violations()).toEqual([]);
    await form.getByLabel("Assistant").selectOption("counter");
    await form.getByLabel("count").fill("3");
    await form.getByRole("tab", { name: "JSON" }).click();
    expect(JSON.parse(await form.getByLabel("Input (JSON)").inputValue())).toEqual({ count: 3 });
    expect(await shown.violations()).toEqual([]);
    await form.getByLabel("Input (JSON)").fill("{");
    expect(await form.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await form.getByLabel("Input (JSON)").fill(JSON.stringify(saying("hello")));
    await form.getByLabel("Time zone").fill("Mars/Olympus");
    await form.getByRole("button", { name: "Save" }).click();
    await form
      .getByRole("alert")
      .getByText(/'Mars\/Olympus' is no IANA time zone/)
      .waitFor();
    expect(await crons()).toEqual([]);
    await form.getByLabel("Time zone").fill("Asia/Tokyo");
    await form.getByLabel("When a run ends, its thread").selectOption("keep");
    await form.getByText("Metadata", { exact: true }).first().click();
    await form.getByLabel("Metadata").fill('{"team": "constructor"}');
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "hidden" });
    const [cron] = await crons();
    expect(cron).toMatchObject({
      schedule: "*/15 * * * *",
      timezone: "Asia/Tokyo",
      on_run_completed: "keep",
      metadata: { team: "constructor" },
      payload: { input: saying("hello") },
    });
    await row(cron!.cron_id).getByText("Every 15 minutes").waitFor();
  });

  test("keeps the seconds of an end time if only other fields are changed", async () => {
    const cron = await aCron({ end_time: "2100-01-01T00:00:42.000Z" });
    await shown.go("/crons");
    await row(cron.cron_id).getByRole("button", { name: /^Edit/ }).click();
    const form = shown.page.getByRole("dialog", { name: "Edit cron" });
    await form.getByLabel("Schedule").fill("30 6 * * *");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "hidden" });
    const [changed] = await crons();
    expect(changed?.schedule).toBe("30 6 * * *");
    expect(changed?.end_time).toBe(cron.end_time);
  });

  test("creates one on a thread", async () => {
    const threadId = await api.aThread();
    const { page } = shown;
    await shown.go("/crons");
    await page.getByRole("button", { name: "New cron" }).click();
    const form = page.getByRole("dialog", { name: "New cron" });
    await form.getByLabel("Thread", { exact: true }).fill(threadId);
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "hidden" });
    expect(await crons()).toMatchObject([{ thread_id: threadId, on_run_completed: null }]);
  });

  test("changes one, pauses and resumes it, and deletes it after a confirmation", async () => {
    const { page } = shown;
    const cron = await aCron({ end_time: "2100-01-01T00:00:00Z", metadata: { kept: true } });
    await shown.go("/crons");
    await row(cron.cron_id).getByRole("button", { name: /^Edit/ }).click();
    const form = page.getByRole("dialog", { name: "Edit cron" });
    await form.getByLabel("Schedule").fill("30 6 * * *");
    await form.getByLabel("End time").fill("");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "hidden" });
    expect(await crons()).toMatchObject([
      { schedule: "30 6 * * *", end_time: null, metadata: { kept: true } },
    ]);
    await row(cron.cron_id)
      .getByRole("button", { name: /^Pause/ })
      .click();
    await row(cron.cron_id).getByText("paused").waitFor();
    expect(await crons()).toMatchObject([{ enabled: false }]);
    await row(cron.cron_id)
      .getByRole("button", { name: /^Resume/ })
      .click();
    await row(cron.cron_id).getByText("enabled").waitFor();
    await row(cron.cron_id)
      .getByRole("button", { name: /^Delete/ })
      .click();
    const question = page.getByRole("dialog", { name: "Delete cron At 06:30?" });
    await question.getByRole("button", { name: "Go back" }).click();
    expect(await crons()).toHaveLength(1);
    await row(cron.cron_id)
      .getByRole("button", { name: /^Delete/ })
      .click();
    await question.getByRole("button", { name: "Delete" }).click();
    await page.getByText("There are no crons.").waitFor();
    expect(await crons()).toEqual([]);
  });

  test("shows the last runs of one, and why the server has disabled one", async () => {
    const cron = await aCron();
    const other = await aCron({ schedule: "@hourly" });
    await query(
      shown.server,
      "update threadloom.crons set enabled = false, next_run_date = null, error = 'Its <b>assistant</b> is gone.' where cron_id = $1",
      [other.cron_id],
    );
    await api.aRun(await api.aThread(), { assistant_id: "counter", input: saying("not of the cron") });
    const run = await api.aRun(await api.aThread(), {
      assistant_id: "failing",
      input: {},
      metadata: { cron_id: cron.cron_id },
    });
    await api.untilRunIs(run.thread_id, run.run_id, "error");
    await shown.go("/crons");
    await row(other.cron_id).getByText("Its <b>assistant</b> is gone.").waitFor();
    await row(cron.cron_id)
      .getByRole("link", { name: /^Runs of/ })
      .click();
    const dialog = shown.page.getByRole("dialog", { name: "Last runs of 0 9 * * 1-5" });
    await dialog.getByText("This graph always fails.").waitFor();
    expect(await dialog.getByRole("row").count()).toBe(2);
    expect(await shown.violations()).toEqual([]);
    await dialog.getByRole("link", { name: run.run_id.slice(-8) }).click();
    await shown.page.waitForURL(new RegExp(`#/runs/${run.run_id}`));
    await shown.page.getByRole("main").getByText("This graph always fails.").first().waitFor();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
