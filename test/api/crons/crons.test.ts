import { expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { Api, Refusal } from "../../helpers/api.ts";
import { onServer } from "../../helpers/servers.ts";

/** The records of crons; firing.test.ts tests their runs. */

let api: Api;
onServer({ role: "api" }, (opened) => ({ api } = opened));

const RARELY = "0 0 1 1 *";

const aCron = async (fields: object = {}, path = "/runs/crons"): Promise<CronRecord> => {
  const { status, text, body } = await api.post<CronRecord>(path, {
    assistant_id: "agent",
    schedule: RARELY,
    ...fields,
  });
  if (status !== 200) throw new Error(text);
  return body;
};
const refused = async (fields: object, path = "/runs/crons") => {
  const { status, body } = await api.post<Refusal>(path, {
    assistant_id: "agent",
    schedule: RARELY,
    ...fields,
  });
  return [status, body.detail];
};
const read = async (cronId: string) => (await api.get<CronRecord>(`/runs/crons/${cronId}`)).body;

test("a cron is returned with all fields and its next time", async () => {
  const cron = await aCron({
    schedule: "30 9 * * MON-FRI",
    timezone: "Europe/Berlin",
    input: { messages: ["\u0000"] },
    metadata: { team: "a" },
    config: { tags: ["t"] },
    context: { user: "u" },
    webhook: "https://example.org/hook",
    interrupt_before: ["model"],
    durability: "exit",
    end_time: "2100-01-01T00:00:00",
  });
  expect(cron).toEqual({
    cron_id: expect.any(String),
    assistant_id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
    thread_id: null,
    on_run_completed: "delete",
    end_time: "2100-01-01T00:00:00.000+00:00",
    schedule: "30 9 * * MON-FRI",
    timezone: "Europe/Berlin",
    created_at: expect.any(String),
    updated_at: expect.any(String),
    user_id: null,
    payload: {
      assistant_id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
      schedule: "30 9 * * MON-FRI",
      input: { messages: ["\u0000"] },
      config: { tags: ["t"] },
      context: { user: "u" },
      webhook: "https://example.org/hook",
      interrupt_before: ["model"],
      durability: "exit",
    },
    next_run_date: expect.stringMatching(/T0[78]:30:00\.000\+00:00$/),
    metadata: { team: "a" },
    enabled: true,
    error: null,
  });
  expect(await read(cron.cron_id)).toEqual(cron);
});

test("a cron of a thread names the thread, and has no on_run_completed", async () => {
  const threadId = await api.aThread();
  const cron = await aCron({ on_run_completed: "keep" }, `/threads/${threadId}/runs/crons`);
  expect(cron).toMatchObject({ thread_id: threadId, on_run_completed: null });
});

test("an invalid cron is refused in one sentence", async () => {
  const names = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly";
  const fields = `'schedule': must have five fields (minute, hour, day of month, month, day of week; no seconds, no year) or be one of ${names}.`;
  for (const schedule of ["", "* * * *", "* * * * * *", "@reboot", "@every 5m", "2030-01-01T00:00:00"])
    expect(await refused({ schedule })).toEqual([422, fields]);
  expect(await refused({ schedule: "61 * * * *" })).toEqual([
    422,
    "'schedule': the minute '61' can't be read; write 0 to 59, such as 5, 0,30, 10-20, */15 or 5/15.",
  ]);
  expect(await refused({ schedule: "0 0 30 2 *" })).toEqual([422, "'schedule': is never due."]);
  for (const timezone of ["Mars/Base", "+01:00"])
    expect(await refused({ timezone })).toEqual([
      422,
      `'timezone': '${timezone}' is no IANA time zone, such as 'Europe/Berlin'.`,
    ]);
  expect((await refused({ end_time: "soon" }))[0]).toBe(422);
  for (const end_time of ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
    expect((await refused({ end_time }))[0]).toBe(422);
  expect((await refused({ config: { recursion_limit: 10_001 } }))[0]).toBe(422);
  const missing = newId();
  expect(await refused({ assistant_id: missing })).toEqual([404, `Assistant '${missing}' not found.`]);
  expect(await refused({}, `/threads/${missing}/runs/crons`)).toEqual([
    404,
    `Thread '${missing}' not found.`,
  ]);
  expect((await api.get(`/runs/crons/${missing}`)).status).toBe(404);
  expect((await api.patch(`/runs/crons/${missing}`, {})).status).toBe(404);
  expect((await api.remove(`/runs/crons/${missing}`)).status).toBe(404);
});

test("a change keeps omitted fields, and computes the next time again", async () => {
  const cron = await aCron({ input: { a: 1 }, metadata: { a: 1, b: 1 }, end_time: "2100-01-01T00:00:00Z" });
  const patch = async (fields: object) =>
    (await api.patch<CronRecord>(`/runs/crons/${cron.cron_id}`, fields)).body;
  expect(await patch({})).toEqual({ ...cron, updated_at: expect.any(String) });
  expect(
    await patch({
      schedule: "15 4 1 2 *",
      timezone: "UTC",
      metadata: { b: 2 },
      context: { c: 1 },
      on_run_completed: "keep",
    }),
  ).toMatchObject({
    next_run_date: expect.stringMatching(/-02-01T04:15:00\.000\+00:00$/),
    metadata: { a: 1, b: 2 },
    payload: { input: { a: 1 }, context: { c: 1 }, schedule: "15 4 1 2 *" },
    on_run_completed: "keep",
    end_time: "2100-01-01T00:00:00.000+00:00",
  });
  expect(await patch({ end_time: null, input: { z: 1 } })).toMatchObject({
    end_time: null,
    payload: { input: { z: 1 } },
  });
  expect(await patch({ end_time: "2001-01-01T00:00:00Z" })).toMatchObject({
    enabled: true,
    next_run_date: null,
  });
  expect(await patch({ end_time: null })).toMatchObject({ next_run_date: expect.any(String) });
  expect(await patch({ enabled: false })).toMatchObject({ enabled: false, next_run_date: null });
  expect(await patch({ enabled: true })).toMatchObject({ next_run_date: expect.any(String) });
  const before = await read(cron.cron_id);
  const { status, body } = await api.patch<Refusal>(`/runs/crons/${cron.cron_id}`, {
    schedule: "* *",
    metadata: { lost: true },
  });
  expect([status, body.detail]).toEqual([422, expect.stringContaining("'schedule'")]);
  expect(await read(cron.cron_id)).toEqual(before);
});

test("crons can be searched, counted and sorted", async () => {
  const threadId = await api.aThread();
  const made: CronRecord[] = [];
  for (let index = 0; index < 3; index += 1)
    made.push(
      await aCron(
        { schedule: `0 0 ${3 - index} 1 *`, metadata: { group: "s", index }, enabled: index !== 1 },
        index === 2 ? `/threads/${threadId}/runs/crons` : undefined,
      ),
    );
  const [first, second, third] = made.map(({ cron_id }) => cron_id);
  const search = async (fields: object) => {
    const { headers, body } = await api.post<Partial<CronRecord>[]>("/runs/crons/search", {
      metadata: { group: "s" },
      ...fields,
    });
    const total = headers.get("x-pagination-total");
    return [body.map(({ cron_id }) => cron_id), total, headers.get("x-pagination-next")];
  };
  expect(await search({})).toEqual([[third, second, first], "3", null]);
  expect(await search({ limit: 2 })).toEqual([[third, second], "3", "2"]);
  expect(await search({ limit: 2, offset: 2 })).toEqual([[first], "3", null]);
  expect(await search({ offset: 5 })).toEqual([[], "3", null]);
  expect(await search({ enabled: false })).toEqual([[second], "1", null]);
  expect(await search({ thread_id: threadId })).toEqual([[third], "1", null]);
  expect(await search({ assistant_id: "agent", sort_order: "asc" })).toEqual([
    [first, second, third],
    "3",
    null,
  ]);
  expect(await search({ sort_by: "next_run_date", sort_order: "asc" })).toEqual([
    [third, first, second],
    "3",
    null,
  ]);
  expect(await search({ assistant_id: newId() })).toEqual([[], "0", null]);
  const selected = await api.post("/runs/crons/search", {
    metadata: { group: "s", index: 0 },
    select: ["cron_id", "metadata", "now"],
  });
  expect(selected.body).toEqual([
    { cron_id: first, metadata: { group: "s", index: 0 }, now: expect.any(String) },
  ]);
  expect((await api.post("/runs/crons/count", { metadata: { group: "s" } })).body).toBe(3);
  expect((await api.post("/runs/crons/count", { thread_id: threadId })).body).toBe(1);
});

test("a cron is deleted once, and is deleted with its thread", async () => {
  const cron = await aCron();
  expect((await api.remove(`/runs/crons/${cron.cron_id}`)).status).toBe(204);
  expect((await api.remove(`/runs/crons/${cron.cron_id}`)).status).toBe(404);
  const threadId = await api.aThread();
  const ofThread = await aCron({}, `/threads/${threadId}/runs/crons`);
  await api.remove(`/threads/${threadId}`);
  expect((await api.get(`/runs/crons/${ofThread.cron_id}`)).status).toBe(404);
});

test("a cron whose assistant is deleted stays, shows that, and can't be enabled", async () => {
  const { assistant_id } = (await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" }))
    .body;
  const cron = await aCron({ assistant_id });
  await api.remove(`/assistants/${assistant_id}`);
  expect(await read(cron.cron_id)).toEqual({
    ...cron,
    enabled: false,
    next_run_date: null,
    error: `Assistant '${assistant_id}' not found.`,
  });
  const { status, body } = await api.patch<Refusal>(`/runs/crons/${cron.cron_id}`, { enabled: true });
  expect([status, body.detail]).toEqual([404, `Assistant '${assistant_id}' not found.`]);
});
