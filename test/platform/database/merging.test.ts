import pg from "pg";
import { expect, test } from "vitest";
import { saying, type Api, type Refusal, type ThreadRecord } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

/** Merged values of several requests have a limit, like the values of each request. */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

/** The result of two requests with keys of 0.95 MB. */
const ALMOST_FULL = "jsonb_build_object('before', repeat('x', 1900000))";
const LARGE = { text: "x".repeat(200_000) };

const aThread = async (): Promise<string> => {
  const threadId = await api.aThread();
  await query(server, `update threadloom.threads set metadata = ${ALMOST_FULL} where thread_id = $1`, [
    threadId,
  ]);
  return `/threads/${threadId}`;
};
const anAssistant = async (): Promise<string> => {
  const { body } = await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" });
  await query(server, `update threadloom.assistants set metadata = ${ALMOST_FULL} where assistant_id = $1`, [
    body.assistant_id,
  ]);
  return `/assistants/${body.assistant_id}`;
};
const aState = async (): Promise<string> => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "two-step", input: saying("hello") });
  await query(server, `update threadloom.checkpoints set metadata = ${ALMOST_FULL} where thread_id = $1`, [
    threadId,
  ]);
  return `/threads/${threadId}/state`;
};

test.each([
  ["a thread", aThread],
  ["an assistant", anAssistant],
  ["a state", aState],
])("metadata of %s are refused if the merged value would be too large", async (_, make) => {
  const path = await make();
  const metadataOf = async () => (await api.get<{ metadata: object }>(path)).body.metadata;
  const before = await metadataOf();
  const refused = await api.patch<Refusal>(path, { metadata: LARGE });
  expect([refused.status, refused.body.detail]).toEqual([
    422,
    "'metadata': merged with the stored metadata this would be more than 2000000 bytes or 4000 elements.",
  ]);
  expect(await metadataOf()).toEqual(before);
  expect((await api.patch(path, { metadata: { note: "short" } })).status).toBe(200);
  expect(await metadataOf()).toEqual({ ...before, note: "short" });
});

const members = (count: number, prefix: string): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, index]));

test.each<[string, () => Promise<string>]>([
  ["a thread", async () => `/threads/${await api.aThread()}`],
  [
    "an assistant",
    async () => {
      const { body } = await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" });
      return `/assistants/${body.assistant_id}`;
    },
  ],
])("merged metadata of %s have at most 4,000 elements, at any depth", async (_, make) => {
  const path = await make();
  const patch = (metadata: object) => api.patch<Refusal>(path, { metadata });
  for (const metadata of [members(2_000, "a"), { deep: members(1_998, "b") }])
    expect((await patch(metadata)).status).toBe(200);
  const { status, body } = await patch({ two: "more", elements: [] });
  expect([status, body.detail]).toEqual([
    422,
    "'metadata': merged with the stored metadata this would be more than 2000000 bytes or 4000 elements.",
  ]);
  expect((await patch({ one: "more" })).status).toBe(200);
  expect((await patch({ deep: null, two: "more" })).status).toBe(200);
});

test("small items of lists count, too", async () => {
  const path = `/threads/${await api.aThread()}`;
  const patch = (name: string) => api.patch(path, { metadata: { [name]: Array(1_990).fill(true) } });
  const statuses = [(await patch("a")).status, (await patch("b")).status, (await patch("c")).status];
  expect(statuses).toEqual([200, 200, 422]);
});

test("a thread keeps the newest run's configuration if it has no room for those of all runs", async () => {
  const threadId = await api.aThread();
  await query(
    server,
    `update threadloom.threads set config = jsonb_build_object('configurable', ${ALMOST_FULL}) where thread_id = $1`,
    [threadId],
  );
  const configurableOf = ({ config }: Record<string, unknown>) =>
    (config as { configurable: object }).configurable;
  const given = (configurable: object) =>
    api.aRun(threadId, {
      assistant_id: "two-step",
      input: saying("hello"),
      after_seconds: 3_600,
      config: { configurable },
    });
  const kept = async () =>
    Object.keys(configurableOf((await api.get<Record<string, unknown>>(`/threads/${threadId}`)).body));
  await given({ tone: "dry" });
  expect(await kept()).toEqual(["before", "tone"]);
  const { kwargs } = await given(LARGE);
  expect(await kept()).toEqual(["text"]);
  expect(configurableOf(kwargs)).toEqual(LARGE);
});

test("a thread that was deleted and created again while its change waited does not count as too large", async () => {
  const threadId = await api.aThread();
  const holder = new pg.Client({ connectionString: server.connectionString });
  await holder.connect();
  try {
    await holder.query("begin");
    await holder.query("delete from threadloom.threads where thread_id = $1", [threadId]);
    await holder.query("insert into threadloom.threads (thread_id) values ($1)", [threadId]);
    const patched = api.patch<ThreadRecord>(`/threads/${threadId}`, { metadata: { note: "short" } });
    await eventually("the change waits", async () => {
      const [row] = await query<{ count: number }>(
        server,
        `select count(*)::int as count from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return row?.count === 1;
    });
    await holder.query("commit");
    expect((await patched).body).toMatchObject({ thread_id: threadId, metadata: { note: "short" } });
  } finally {
    await holder.end();
  }
});
