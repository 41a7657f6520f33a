import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

/** A team's crons: each member may change them, but no change makes a cron run in another member's name. */

const KEY = "the-key-of-the-operator";
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
    apiKeys: [KEY],
  });
});
afterAll(async () => {
  await server.close();
});

const HEADERS = {
  ann: { authorization: "Bearer ann" },
  bob: { authorization: "Bearer bob" },
  operator: { "x-api-key": KEY },
};
type Who = keyof typeof HEADERS;

const ask = async <Body>(who: Who, method: string, path: string, body?: unknown): Promise<Body> => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { ...HEADERS[who], "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Body;
};
const change = async (who: Who, { cron_id }: CronRecord, body: object) =>
  await ask<CronRecord>(who, "PATCH", `/runs/crons/${cron_id}`, body);

const aCron = async (fields: object = {}): Promise<CronRecord> =>
  await ask("ann", "POST", "/runs/crons", {
    assistant_id: "who",
    schedule: "0 0 1 1 *",
    input: { seen: "ann's" },
    on_run_completed: "keep",
    ...fields,
  });

/** The user that a cron's next run passes to its graph, and the user for whom the run counts. */
const nextRunOf = async ({ cron_id }: CronRecord): Promise<{ user: string; caller: string | null }> => {
  await query(server, "update threadloom.crons set next_run_date = now() where cron_id = $1", [cron_id]);
  const search = { metadata: { cron_id } };
  const run = await eventually("the cron has run", async () => {
    const [found] = await ask<RunRecord[]>("operator", "POST", "/runs/search", search);
    return found?.status === "success" ? found : undefined;
  });
  const { values } = await ask<{ values: { seen: { id: string } } }>(
    "operator",
    "GET",
    `/threads/${run.thread_id}/state`,
  );
  const [row] = await query<{ caller: string | null }>(
    server,
    "select caller from threadloom.runs where run_id = $1",
    [run.run_id],
  );
  return { user: values.seen.id, caller: row?.caller ?? null };
};

describe("a cron's runs belong to the teammate who", () => {
  test.each<[what: string, made: object, changed: object]>([
    ["changes their input", {}, { input: { seen: "bob's" } }],
    ["changes their configuration", {}, { config: { configurable: { model: "dear" } } }],
    ["changes their metadata", {}, { metadata: { label: "bob's" } }],
    ["enables it", { enabled: false }, { enabled: true }],
  ])("%s, in the graph's user and in the counts", async (_what, made, changed) => {
    const [others, cron] = [await aCron(), await aCron(made)];
    const after = await change("bob", cron, changed);
    expect(after.user_id).toBe("ann");
    const [ann, bob] = [await nextRunOf(others), await nextRunOf(cron)];
    expect([ann.user, bob.user]).toEqual(["ann", "bob"]);
    expect(bob.caller).toMatch(/^user:/);
    expect(bob.caller).not.toBe(ann.caller);
  });
});

describe("the runs stay with the creator if", () => {
  test.each<[what: string, who: Who, changed: object]>([
    [
      "a teammate changes nothing",
      "bob",
      { input: { seen: "ann's" }, metadata: { team: "blue" }, enabled: true },
    ],
    ["a teammate changes its times", "bob", { schedule: "0 0 2 1 *" }],
    ["the operator changes their input", "operator", { input: { seen: "the operator's" } }],
  ])("%s", async (_what, who, changed) => {
    const cron = await aCron();
    await change(who, cron, changed);
    expect((await nextRunOf(cron)).user).toBe("ann");
  });
});
