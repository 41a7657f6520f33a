import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { expect, test } from "vitest";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onServer } from "../../helpers/servers.ts";
import { startTestServer } from "../../helpers/app.ts";
import {
  AGUI_GRAPHS,
  aFront,
  deltasOf,
  DIALECTS,
  ofType,
  typesOf,
  type Event,
  type Front,
} from "./clients.ts";

let connectionString: string;
let url: string;
let api: Api;
onServer({ graphConfigFile: AGUI_GRAPHS }, (opened) => {
  ({ url, connectionString } = opened.server);
  ({ api } = opened);
});

const isWaiting = ({ type, stepName }: Event): boolean => type === "STEP_STARTED" && stepName === "wait";

/** Starts a run that answers, and waits at its gate. The page is still connected. */
const aRunAtItsGate = async (page: Front, asked: { runId?: string } & Record<string, unknown> = {}) => {
  const label = randomUUID();
  const ended = page.run({ say: label, ...asked }).catch((error: unknown) => error);
  await eventually("the run waits at its gate", () => isAtGate(label));
  await eventually("the page has the first answer", () => page.messages.at(-1)?.content === "t0 t1 t2 ");
  return { label, ended };
};

/** Opens the gate when the page has caught up. */
const opening = (label: string) => (event: Event) => isWaiting(event) && openGate(label);

const textsOf = ({ messages }: Front): unknown[] => messages.map(({ content }) => content);

test.each(DIALECTS)("a page of %s that is reloaded goes on with the run in progress", async (dialect) => {
  const page = aFront(url, "chat-gate", { dialect });
  const { label, ended } = await aRunAtItsGate(page);
  page.abort();
  await ended;
  const reloaded = aFront(url, "chat-gate", { dialect, threadId: page.threadId });
  const events = await reloaded.run({ onEvent: opening(label) });
  expect(textsOf(reloaded)).toEqual([label, "t0 t1 t2 ", "t0 t1 "]);
  expect(deltasOf(events, "TEXT_MESSAGE_CONTENT")).toBe("t0 t1 t2 t0 t1 ");
  expect(await api.runs(page.threadId)).toMatchObject([{ status: "success", metadata: { origin: "agui" } }]);
});

test("a page that only lost its connection does not get a text twice", async () => {
  const page = aFront(url, "chat-gate");
  const { label, ended } = await aRunAtItsGate(page);
  page.abort();
  await ended;
  await page.run({ onEvent: opening(label) });
  expect(textsOf(page)).toEqual([label, "t0 t1 t2 ", "t0 t1 "]);
  expect(await api.runs(page.threadId)).toHaveLength(1);
});

test("a page that lost its connection joins its run, also before the thread has stored the question", async () => {
  const holder = new Client({ connectionString });
  await holder.connect();
  try {
    await holder.query("begin; lock table threadloom.checkpoints in share mode");
    const page = aFront(url, "chat-gate");
    const { label, ended } = await aRunAtItsGate(page);
    page.abort();
    await ended;
    const events: Event[] = [];
    const joined = page.run({ onEvent: (event) => events.push(event) });
    await eventually("the page reads the run that waits", () => events.some(isWaiting));
    await holder.query("commit");
    openGate(label);
    await joined;
    expect(textsOf(page)).toEqual([label, "t0 t1 t2 ", "t0 t1 "]);
    expect(await api.runs(page.threadId)).toHaveLength(1);
  } finally {
    await holder.end();
  }
});

test("several pages read the same run, also through a server that does not execute it", async () => {
  const replica = await startTestServer({ connectionString, graphConfigFile: AGUI_GRAPHS, role: "api" });
  try {
    const page = aFront(url, "chat-gate");
    const { label, ended } = await aRunAtItsGate(page);
    const other = aFront(replica.url, "chat-gate", { threadId: page.threadId });
    await other.run({ onEvent: opening(label) });
    await ended;
    expect(textsOf(other)).toEqual([label, "t0 t1 t2 ", "t0 t1 "]);
    expect(other.messages).toEqual(page.messages);
  } finally {
    await replica.close();
  }
});

test("without a run in progress a reloaded page gets the thread as it is", async () => {
  const page = aFront(url, "approval");
  await page.run({ say: "a chair" });
  const finished = aFront(url, "two-step");
  await finished.run({ say: "x" });
  const reloaded = aFront(url, "two-step", { threadId: finished.threadId });
  const events = await reloaded.run();
  expect(typesOf(events)).toEqual(["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
  expect(reloaded.messages).toEqual(finished.messages);
  expect(await api.runs(finished.threadId)).toHaveLength(1);
});

test("a new page shows nothing, and its greeting starts no run", async () => {
  const page = aFront(url, "two-step");
  const greeting = { id: "greeting", role: "assistant", content: "How can I help?" };
  const events = await page.run({ messages: [greeting] });
  expect(typesOf(events)).toEqual(["RUN_STARTED", "STATE_SNAPSHOT", "RUN_FINISHED"]);
  expect(page.messages).toMatchObject([greeting]);
  await page.run({ say: "hi" });
  expect(textsOf(page)).toEqual(["How can I help?", "hi", "first", "second"]);
});

test.each(DIALECTS)(
  "a page of %s that missed a turn shows this turn before its own next question",
  async (dialect) => {
    const page = aFront(url, "two-step", { dialect });
    await page.run({ say: "one" });
    const other = aFront(url, "two-step", { dialect, threadId: page.threadId });
    await other.run();
    await other.run({ say: "two" });
    const events = await page.run({ say: "three" });
    expect(textsOf(page)).toEqual(["one", "two", "three"].flatMap((text) => [text, "first", "second"]));
    expect(page.messages.map(({ id }) => id)).toEqual(
      (await api.state(page.threadId)).values.messages?.map(({ id }) => id),
    );
    // What the page has already is cut once.
    expect(ofType(events, "MESSAGES_SNAPSHOT")).toHaveLength(3);
  },
);

test("a thread whose messages were removed gets those of the page again", async () => {
  const page = aFront(url, "two-step");
  await page.run({ say: "x" });
  const values = { messages: [{ type: "remove", id: "__remove_all__", content: "" }] };
  expect((await api.post(`/threads/${page.threadId}/state`, { values })).status).toBe(200);
  await page.run({ say: "y" });
  expect(textsOf(page)).toEqual(["x", "first", "second", "y", "first", "second"]);
});

test("a repeated request joins its run, while it runs and after it", async () => {
  const page = aFront(url, "chat-gate");
  const runId = randomUUID();
  const { label, ended } = await aRunAtItsGate(page, { runId });
  const message = { id: page.messages[0]?.id ?? "", role: "user", content: label };
  const repeat = async (onEvent?: (event: Event) => void) => {
    const again = aFront(url, "chat-gate", { threadId: page.threadId });
    const events = await again.run({ messages: [message], runId, ...(onEvent && { onEvent }) });
    return { events, texts: textsOf(again) };
  };
  const texts = [label, "t0 t1 t2 ", "t0 t1 "];
  expect((await repeat(opening(label))).texts).toEqual(texts);
  await ended;
  const later = await repeat();
  expect(later.texts).toEqual(texts);
  expect(later.events.at(-1)).toMatchObject({ runId, outcome: { type: "success" } });
  expect(await api.runs(page.threadId)).toHaveLength(1);
});

test("the same request twice at once starts one run", async () => {
  const threadId = randomUUID();
  const asked = { messages: [{ id: "m", role: "user", content: "x" }], runId: randomUUID() };
  const fronts = [1, 2, 3, 4].map(() => aFront(url, "two-step", { threadId }));
  await Promise.all(fronts.map((front) => front.run(asked)));
  for (const front of fronts) expect(textsOf(front)).toEqual(["x", "first", "second"]);
  expect(await api.runs(threadId)).toHaveLength(1);
});

test("a second message waits for the run in progress", async () => {
  const page = aFront(url, "chat-gate");
  const { label, ended } = await aRunAtItsGate(page);
  const other = aFront(url, "chat-gate", { threadId: page.threadId });
  const second = randomUUID();
  const answered = other.run({ messages: [...page.messages], say: second });
  await eventually("the second run waits", async () => (await api.runs(page.threadId)).length === 2);
  openGate(label);
  await ended;
  await eventually("the second run is at its gate", () => isAtGate(second));
  openGate(second);
  await answered;
  expect(other.messages.at(-1)?.content).toBe("t0 t1 ");
  const { values } = await api.state(page.threadId);
  expect(values.messages?.map(({ content }) => content)).toEqual([
    ...[label, "t0 t1 t2 ", "t0 t1 "],
    ...[second, "t0 t1 t2 ", "t0 t1 "],
  ]);
});

test("a run goes on without its page, unless the request says otherwise", async () => {
  const kept = aFront(url, "chat-gate");
  const first = await aRunAtItsGate(kept);
  kept.abort();
  await first.ended;
  const stopped = aFront(url, "chat-gate");
  const second = await aRunAtItsGate(stopped, { forwardedProps: { onDisconnect: "cancel" } });
  stopped.abort();
  await second.ended;
  const [run] = await api.runs(stopped.threadId);
  await api.untilRunIs(stopped.threadId, run?.run_id ?? "", "interrupted");
  expect(await api.runs(kept.threadId)).toMatchObject([{ status: "running" }]);
  openGate(first.label);
  await api.untilQuiet(kept.threadId);
});

test.each(DIALECTS)("a run is cancelled by the ids that a client of %s knows", async (dialect) => {
  const page = aFront(url, "chat-gate", { dialect });
  const runId = randomUUID();
  const { label, ended } = await aRunAtItsGate(page, { runId });
  const cancel = (body: object) => api.post(`/agui/chat-gate/cancel`, { threadId: page.threadId, ...body });
  expect((await cancel({ runId: "another" })).status).toBe(404);
  expect((await cancel({ runId })).status).toBe(204);
  const events = (await ended) as Event[];
  expect(events.at(-1)?.["outcome"]).toEqual(dialect === "1.0" ? { type: "cancelled" } : undefined);
  expect(textsOf(page)).toEqual([label, "t0 t1 t2 "]);
  const next = await aRunAtItsGate(page);
  expect((await cancel({})).status).toBe(204);
  expect(((await next.ended) as Event[]).at(-1)?.type).toBe("RUN_FINISHED");
});

test("a thread that is deleted ends the stream with an error", async () => {
  const page = aFront(url, "chat-gate");
  const { ended } = await aRunAtItsGate(page);
  await apiOf({ url }).remove(`/threads/${page.threadId}`);
  const events = (await ended) as Event[];
  expect(ofType(events, "RUN_ERROR")).toHaveLength(1);
});
