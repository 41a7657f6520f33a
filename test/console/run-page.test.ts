import { beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { startReceiver } from "../protocols/webhooks/receiver.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const ASK = { assistant_id: "agent", input: saying("Weather in Rome? And what is 12 * 31?") };
const FAIL = { assistant_id: "failing", input: saying("hello"), metadata: { shift: "late", origin: "mcp" } };
const SLEEP = { assistant_id: "gated", input: saying("wait") };
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1280, height: 720 },
  { width: 390, height: 844 },
];

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of a run", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let api: Api;
  const projectKeys = { webhooks: { url: { disable_loopback: false } } };
  onConsole(
    { graphConfigFile: GRAPHS, projectKeys, context: { permissions: ["clipboard-read", "clipboard-write"] } },
    (opened) => {
      shown = opened;
      api = apiOf(shown.server);
    },
  );
  beforeEach(async () => {
    await shown.page.setViewportSize({ width: 1280, height: 720 });
  });

  const aRun = async (fields: object, ...ends: ("success" | "error")[]) => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, fields);
    return ends.length === 0 ? run : await api.untilRunIs(threadId, run.run_id, ...ends);
  };
  const timeline = () => shown.page.getByRole("treegrid", { name: "Timeline of attempt 1" });
  const details = () => shown.page.getByRole("complementary", { name: "Span" });

  test("shows nodes, model and tool calls as a tree, and the details of the chosen span, by keyboard", async () => {
    const run = await aRun(ASK, "success");
    const { page } = shown;
    await shown.go(`/runs/${run.run_id}`);
    await page.getByRole("heading", { level: 1, name: "Weather in Rome? And what is 12 * 31?" }).waitFor();
    await timeline().getByRole("row").nth(6).waitFor();
    const levels = await timeline()
      .getByRole("row")
      .evaluateAll((rows) =>
        rows.map((row) => `${row.getAttribute("aria-level")} ${row.getAttribute("data-span")}`),
      );
    expect(levels).toEqual([
      "1 agent",
      "2 agent",
      "1 tools",
      "2 get_weather",
      "2 calculate",
      "1 agent",
      "2 agent",
    ]);
    await timeline().focus();
    for (let times = 0; times < 3; times += 1) await page.keyboard.press("ArrowDown");
    await details().getByRole("heading", { name: "get_weather" }).waitFor();
    await details().getByRole("region", { name: "Arguments" }).getByText("Rome").waitFor();
    await details()
      .getByRole("region", { name: "Result" })
      .getByText(/in Rome/)
      .waitFor();
    // To the node around it, whose output its checkpoint has, and folded.
    await page.keyboard.press("ArrowLeft");
    await details().getByRole("heading", { name: "tools" }).waitFor();
    await details().getByRole("region", { name: "Output" }).getByText("messages").first().waitFor();
    await details().getByRole("button", { name: "Show the input" }).click();
    await details().getByRole("region", { name: "Input" }).getByText("messages").first().waitFor();
    await timeline().focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => timeline().getByRole("row").count()).toBe(5);
    await page.getByText("in 2 executions").waitFor();
  });

  test("breaks no rule of axe in any size, light or dark, and is never wider than the screen", async () => {
    const run = await aRun(ASK, "success");
    const bad = await aRun(FAIL, "error");
    const { page } = shown;
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of SIZES) {
        await page.setViewportSize(size);
        for (const place of [run.run_id, `${bad.run_id}?tab=error`, `${run.run_id}?tab=input`, "compare"]) {
          await shown.go(
            `/runs/${place}${place === "compare" ? `?left=${run.run_id}&right=${bad.run_id}` : ""}`,
          );
          await page
            .getByRole(place === "compare" ? "table" : "tab")
            .first()
            .waitFor();
          expect(await shown.violations()).toEqual([]);
          expect(await page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")).toBe(true);
        }
      }
    }
    await page.emulateMedia({ colorScheme: null });
  });

  test("shows the details of a span as a sheet on a phone", async () => {
    const run = await aRun(ASK, "success");
    const { page } = shown;
    await page.setViewportSize({ width: 390, height: 844 });
    await shown.go(`/runs/${run.run_id}`);
    await timeline().locator("[data-span=calculate]").click();
    const sheet = page.getByRole("dialog", { name: "calculate" });
    await sheet.getByRole("region", { name: "Result" }).getByText(/372/).waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
  });

  test("shows a failed run's error with its node and its place in the code", async () => {
    const bad = await aRun({ ...FAIL, context: { tone: "dry" } }, "error");
    const { page } = shown;
    await shown.go(`/runs/${bad.run_id}`);
    await details()
      .getByText(/failing\.ts:\d+:\d+/)
      .waitFor();
    await page.getByText("From MCP").waitFor();
    await page.getByRole("tab", { name: "Error" }).click();
    await page.getByText("Error in node fail").waitFor();
    await page.getByRole("tab", { name: "Input and output" }).click();
    for (const [region, text] of [
      ["Input", "hello"],
      ["Metadata", "late"],
      ["Context", "dry"],
    ] as const)
      await page.getByRole("region", { name: region }).getByText(text).first().waitFor();
    expect(await page.getByRole("link", { name: "Open thread" }).getAttribute("href")).toBe(
      `#/threads/${bad.thread_id}`,
    );
  });

  test("goes on while the run does, and cancels and deletes it", async () => {
    const run = await aRun(SLEEP);
    const { page } = shown;
    await shown.go(`/runs/${run.run_id}`);
    await timeline().locator("[data-status=running]").first().waitFor();
    const cancel = page.getByRole("button", { name: "Cancel", exact: true });
    const question = page.getByRole("dialog", { name: "Cancel this run?" });
    await cancel.click();
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    await cancel.and(page.locator(":focus")).waitFor();
    await cancel.click();
    await question.getByRole("button", { name: "Interrupt" }).click();
    await page.getByRole("main").getByText("interrupted").first().waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page
      .getByRole("dialog", { name: "Delete this run?" })
      .getByRole("button", { name: "Delete" })
      .click();
    await page.waitForURL((url) => url.hash === "#/runs");
    expect((await api.get(`/threads/${run.thread_id}/runs/${run.run_id}`)).status).toBe(404);
  });

  test("shows one attempt after another, and says which was lost", async () => {
    const run = await aRun(ASK, "success");
    await query(shown.server, "update threadloom.runs set attempt = 4, lost_attempts = 2 where run_id = $1", [
      run.run_id,
    ]);
    const { page } = shown;
    await shown.go(`/runs/${run.run_id}`);
    await page.getByText("4, 2 lost with a server or graph process, 1 handed back by a server").waitFor();
    const attempts = page.getByRole("group", { name: "Attempts" });
    await page.getByText("No timeline was stored").waitFor();
    await attempts.getByRole("button", { name: "Attempt 2, not stored" }).waitFor();
    await attempts.getByRole("button", { name: "Attempt 1, not finished" }).click();
    await timeline().locator("[data-span=calculate]").waitFor();
  });

  test("says how to store traces if the run has none, and offers another try after an outage", async () => {
    const run = await aRun(ASK, "success");
    await query(shown.server, "delete from threadloom.run_traces where run_id = $1", [run.run_id]);
    const { page } = shown;
    await shown.go(`/runs/${run.run_id}`);
    await page.getByText(/stores traces with TRACES=all/).waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.route("**/trace", (route) => route.fulfill({ status: 422, json: { detail: "It is away." } }));
    await page.reload();
    await page.getByRole("alert").getByText("It is away.").waitFor();
    await page.unroute("**/trace");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText(/stores traces with TRACES=all/).waitFor();
  });

  test("renders few of thousands of spans, with hostile names, and reaches the last by keyboard", async () => {
    const run = await aRun(ASK, "success");
    const { page } = shown;
    const spans = Array.from({ length: 4_000 }, (_, index) => ({
      ...{ id: index + 1, parent: null, kind: "node", start_ms: index, end_ms: index + 1, status: "success" },
      name: index === 3_999 ? "constructor" : `<img src=x onerror=alert(1)> ${"x".repeat(5_000)}`,
    }));
    await page.route("**/trace", async (route) => {
      const answer = await route.fetch();
      const trace = (await answer.json()) as { attempts: object[] };
      trace.attempts = [{ attempt: 1, started_at: null, spans, dropped_spans: 12 }];
      await route.fulfill({ response: answer, json: trace });
    });
    await shown.go(`/runs/${run.run_id}`);
    await page.getByText("12 spans were not stored, because the trace was full.").waitFor();
    expect(await timeline().getByRole("row").count()).toBeLessThan(100);
    await timeline().focus();
    await page.keyboard.press("End");
    await details().getByRole("heading", { name: "constructor" }).waitFor();
    await timeline().locator("[data-span=constructor]").waitFor();
    await page.unroute("**/trace");
  });

  test("copies the request that makes the run again", async () => {
    const run = await aRun(FAIL, "error");
    const { page } = shown;
    await shown.go(`/runs/${run.run_id}`);
    await page.getByRole("button", { name: "Copy as…" }).click();
    await page.getByRole("menuitem", { name: "curl" }).click();
    await page.getByText("Copied as curl.").waitFor();
    const text = await page.evaluate("navigator.clipboard.readText()");
    expect(text).toContain(`/threads/${run.thread_id}/runs'`);
    expect(text).toContain(`"metadata":{"shift":"late","origin":"mcp"}`);
    expect(text).not.toContain("created_by");
  });

  test("compares two runs, chosen from those of the same graph or in the list", async () => {
    const [left, right] = [
      await aRun(ASK, "success"),
      await aRun({ ...ASK, input: saying("What is 3 * 4?") }, "success"),
    ];
    const { page } = shown;
    await shown.go(`/runs/${left.run_id}`);
    await page.getByRole("button", { name: "Compare" }).click();
    await page
      .getByRole("dialog", { name: "Compare with another run" })
      .getByRole("link", { name: right.run_id.slice(-8) })
      .click();
    const facts = page.getByRole("region", { name: "Facts" });
    await facts.getByRole("row", { name: /^Status success success same$/ }).waitFor();
    await facts.getByRole("row", { name: /^Thread .* different$/ }).waitFor();
    for (const side of ["left", "right"])
      await page.getByRole("treegrid", { name: `Timeline ${side}` }).waitFor();
    await page
      .getByRole("region", { name: "Input differences" })
      .getByText("What is 3 * 4?")
      .first()
      .waitFor();
    await page.getByRole("region", { name: "Output differences" }).getByRole("listitem").first().waitFor();
    await shown.go("/runs");
    for (const { run_id } of [left, right]) await page.getByLabel(`Select run ${run_id}`).check();
    await page.getByRole("link", { name: "Compare" }).click();
    await page.waitForURL((url) => url.hash === `#/runs/compare?left=${left.run_id}&right=${right.run_id}`);
  });

  test("shows the state of a run's webhook", async () => {
    const receiver = await startReceiver((_, response) => response.writeHead(503).end());
    try {
      const run = await aRun({ ...FAIL, webhook: `${receiver.url}/told` }, "error");
      await eventually("the webhook was received", () => receiver.received.length > 0 || undefined);
      await shown.go(`/runs/${run.run_id}?tab=webhook`);
      const webhook = shown.page.getByRole("region", { name: "Webhook" });
      await webhook.getByText(`${receiver.url}/told`).waitFor();
      await webhook.getByText("503", { exact: true }).waitFor();
      receiver.answer(undefined);
      await api.post(`/webhooks/deliveries/${run.run_id}/replay`);
      await webhook.getByText("delivered", { exact: true }).waitFor();
      expect(await shown.violations()).toEqual([]);
    } finally {
      await receiver.close();
    }
  });

  test("says that a run does not exist", async () => {
    await shown.go("/runs/00000000-0000-7000-8000-000000000000");
    await shown.page.getByRole("heading", { name: "This run does not exist" }).waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
