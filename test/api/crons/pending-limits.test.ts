import { afterAll, beforeAll, expect, test } from "vitest";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

/** Due crons whose caller has reached the limit of runs, and callers who have reached the limit of crons. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    apiKeys: ["a", "b", "c", "d", "e"],
    keyFactor: 1,
    pendingRunsPerThread: 1,
    pendingRunsPerCaller: 3,
    runsPerMinute: 5,
    cronsPerCaller: 4,
  });
});
afterAll(async () => {
  await server.close();
});

const LATER = { assistant_id: "agent", input: saying("late"), after_seconds: 3_600 };

const ask = async <Body>(key: string, method: string, path: string, body?: unknown): Promise<Body> => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { "x-api-key": key, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (answer.status === 204 ? undefined : await answer.json()) as Body;
};
const aCron = async (key: string, path: string): Promise<CronRecord> =>
  await ask(key, "POST", path, {
    assistant_id: "agent",
    schedule: "0 0 1 1 *",
    input: saying("hello"),
    ...(path === "/runs/crons" ? { on_run_completed: "keep" } : {}),
  });
const runsOf = async (key: string, { cron_id }: CronRecord) =>
  await ask<RunRecord[]>(key, "POST", "/runs/search", { metadata: { cron_id }, limit: 1_000 });
const fire = async (key: string, { cron_id, next_run_date }: CronRecord): Promise<CronRecord> => {
  await query(server, "update threadloom.crons set next_run_date = now() where cron_id = $1", [cron_id]);
  // A server that runs crons polls at once after a change.
  await ask(key, "PATCH", `/runs/crons/${cron_id}`, {});
  return await eventually("the cron is advanced", async () => {
    const cron = await ask<CronRecord>(key, "GET", `/runs/crons/${cron_id}`);
    return cron.next_run_date === next_run_date ? cron : undefined;
  });
};
const logged = ({ cron_id }: CronRecord): string[] =>
  server.lines.filter((line) => line.includes(cron_id) && line.includes("too many runs wait"));

test("a cron whose thread is full runs nothing, which is logged once, and runs again when there is room", async () => {
  const { thread_id: threadId } = await ask<{ thread_id: string }>("a", "POST", "/threads", {});
  const waiting = await ask<RunRecord>("a", "POST", `/threads/${threadId}/runs`, LATER);
  const cron = await aCron("a", `/threads/${threadId}/runs/crons`);
  for (let times = 0; times < 2; times += 1) {
    expect(await fire("a", cron)).toMatchObject({ enabled: true, error: null });
    expect(await runsOf("a", cron)).toEqual([]);
  }
  expect(logged(cron)).toHaveLength(1);
  await ask("a", "DELETE", `/threads/${threadId}/runs/${waiting.run_id}`);
  await fire("a", cron);
  expect(await runsOf("a", cron)).toHaveLength(1);
});

test("two crons that are due at once on a thread with room for one run create one", async () => {
  const { thread_id: threadId } = await ask<{ thread_id: string }>("c", "POST", "/threads", {});
  // Prevents the crons' runs from starting and ending before both were fired.
  const busy = { assistant_id: "sleep", input: { messages: [], milliseconds: 600_000 } };
  await ask("c", "POST", `/threads/${threadId}/runs`, busy);
  const path = `/threads/${threadId}/runs/crons`;
  const crons = [await aCron("c", path), await aCron("c", path)];
  await query(server, "update threadloom.crons set next_run_date = now() where thread_id = $1", [threadId]);
  await ask("c", "PATCH", `/runs/crons/${crons[0]!.cron_id}`, {});
  await eventually("both are advanced", async () => {
    const now = await Promise.all(
      crons.map(({ cron_id }) => ask<CronRecord>("c", "GET", `/runs/crons/${cron_id}`)),
    );
    return now.every(({ next_run_date }, index) => next_run_date === crons[index]!.next_run_date);
  });
  expect((await Promise.all(crons.map((cron) => runsOf("c", cron)))).flat()).toHaveLength(1);
});

test("a cron runs nothing while its creator has reached the limit of waiting runs", async () => {
  const cron = await aCron("b", "/runs/crons");
  await fire("b", cron);
  await eventually("it has run", async () => (await runsOf("b", cron))[0]?.status === "success");
  await ask("b", "POST", "/runs/batch", [LATER, LATER, LATER]);
  for (let times = 0; times < 2; times += 1) await fire("b", cron);
  expect(await runsOf("b", cron)).toHaveLength(1);
  expect(logged(cron)).toHaveLength(1);
});

test("runs of crons count for the caller's limit of runs per minute", async () => {
  const cron = await aCron("d", "/runs/crons");
  const isRefused = (): boolean =>
    server.lines.some((line) => line.includes(cron.cron_id) && line.includes("no run left in this minute"));
  let due = 0;
  // The limit allows another run every twelve seconds.
  while (!isRefused() && due < 1_000) {
    await fire("d", cron);
    due += 1;
  }
  expect(isRefused()).toBe(true);
  expect((await runsOf("d", cron)).length).toBeLessThan(due);
});

test("a caller has a maximum number of crons, and may create another after deleting one", async () => {
  const crons: CronRecord[] = [];
  for (let count = 0; count < 4; count += 1) crons.push(await aCron("e", "/runs/crons"));
  await expect(aCron("e", "/runs/crons")).rejects.toThrow("409");
  await ask("e", "DELETE", `/runs/crons/${crons[0]!.cron_id}`);
  await aCron("e", "/runs/crons");
});
