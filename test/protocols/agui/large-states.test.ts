import { afterAll, beforeAll, expect, test } from "vitest";
import { createResponseBudget, type ResponseBudget } from "../../../src/http/response-budget.ts";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { AGUI_GRAPHS, aFront, typesOf } from "./clients.ts";

const CHARACTERS = 2_000_000;
/** More than the large states that are read at once. */
const PAGES = 6;

/** The sizes that answers asked room for. */
const asked: number[] = [];
let room: Promise<void> | undefined;
let server: TestServer;
beforeAll(async () => {
  const budget = createResponseBudget();
  const responseBudget: ResponseBudget = {
    ...budget,
    async reserve(response, bytes, options) {
      asked.push(bytes);
      await room;
      await budget.reserve(response, bytes, options);
    },
  };
  server = await startTestServer({ graphConfigFile: AGUI_GRAPHS, responseBudget });
});
afterAll(() => server.close());

test("pages that show a large thread wait for room, and meanwhile other requests start runs", async () => {
  const page = aFront(server.url, "two-step");
  await page.run({ say: "x".repeat(CHARACTERS) });
  const { threadId } = page;
  asked.length = 0;
  let letIn: () => void = () => undefined;
  room = new Promise((resolve) => {
    letIn = resolve;
  });
  let shown = 0;
  const pages = Array.from({ length: PAGES }, () => aFront(server.url, "two-step", { threadId }));
  const showing = pages.map((each) => each.run({ onEvent: () => (shown += 1) }));
  await eventually("all pages wait for room", () => asked.length === PAGES);
  for (const bytes of asked) expect(bytes).toBeGreaterThan(CHARACTERS);
  const answered = page.run({ say: "y" });
  await eventually("the run is created", async () => (await apiOf(server).runs(threadId)).length === 2);
  expect(shown).toBe(0);
  letIn();
  for (const events of await Promise.all(showing)) expect(typesOf(events).at(-1)).toBe("RUN_FINISHED");
  await answered;
  for (const each of pages) expect(each.messages.length).toBeGreaterThan(2);
});

test("a page that shows a small thread asks for no room", async () => {
  const page = aFront(server.url, "two-step");
  await page.run({ say: "x" });
  asked.length = 0;
  await aFront(server.url, "two-step", { threadId: page.threadId }).run();
  expect(asked).toEqual([]);
});

test("the page that started a run asks for room for its large last state", async () => {
  asked.length = 0;
  await aFront(server.url, "two-step").run({ say: "x".repeat(CHARACTERS) });
  expect(Math.max(...asked)).toBeGreaterThan(CHARACTERS);
});
