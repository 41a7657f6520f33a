import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { PAGE_BYTES_AT_MOST } from "../../../src/platform/database/bounded-reads.ts";
import { createRunRepository } from "../../../src/api/runs/repository.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { beforeStrings } from "../../helpers/before-strings.ts";
import { TEST_ENCRYPTION } from "../../helpers/encryption.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
});
afterAll(() => server.close());

const anImage = (): string => `data:image/png;base64,${randomBytes(100_000).toString("base64")}`;
const inputWith = (url: string, text = "What is this?") => ({
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text },
        { type: "image_url", image_url: { url } },
      ],
    },
  ],
});

/** The thread and the run, after the run. */
const aRunOf = async (input: object): Promise<{ threadId: string; runId: string }> => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, { assistant_id: "two-step", input });
  const [run] = await api.runs(threadId);
  return { threadId, runId: run?.run_id ?? "" };
};
const storedBytes = async (threadId: string): Promise<{ input: number; state: number }> => {
  const [row] = await query<{ input: number; state: number }>(
    server,
    `select octet_length(kwargs::text) as input, (
       select sum(octet_length(content))::integer from threadloom.checkpoint_contents c
       where c.thread_id = r.thread_id and octet_length(content) >= 32768
     ) as state from threadloom.runs r where thread_id = $1`,
    [threadId],
  );
  return row ?? { input: NaN, state: NaN };
};
const inputOf = async (threadId: string, runId: string): Promise<unknown> => {
  const { body } = await server.client.get(`/threads/${threadId}/runs/${runId}`).expect(200);
  return (body as { kwargs: { input: unknown } }).kwargs.input;
};

test("an image of an input is stored once, in the thread's state, and the run shows the whole input", async () => {
  const url = anImage();
  const { threadId, runId } = await aRunOf(inputWith(url));
  await eventually("the input is small", async () => (await storedBytes(threadId)).input < 2_000);
  expect((await storedBytes(threadId)).state).toBeLessThan(1.5 * url.length);
  expect(await inputOf(threadId, runId)).toEqual(inputWith(url));
  expect(await api.runs(threadId)).toMatchObject([{ kwargs: { input: inputWith(url) } }]);
  // Without the messages, only the run needs the image.
  await server.client
    .post(`/threads/${threadId}/state`)
    .send({ values: { messages: [{ type: "remove", id: "__remove_all__", content: "" }] } })
    .expect(200);
  await server.client
    .post("/threads/prune")
    .send({ thread_ids: [threadId], strategy: "keep_latest" })
    .expect(200);
  expect(await inputOf(threadId, runId)).toEqual(inputWith(url));
});

test("a page of runs ends early if their whole inputs are large", async () => {
  const threadId = await api.aThread();
  for (let runs = 0; runs < 4; runs += 1)
    await api.aFinishedRun(threadId, { assistant_id: "two-step", input: inputWith("data:,") });
  const threeFillAPage = PAGE_BYTES_AT_MOST / 2 - 100_000;
  await query(server, "update threadloom.runs set string_bytes = $2 where thread_id = $1", [
    threadId,
    threeFillAPage,
  ]);
  expect(await api.runs(threadId)).toHaveLength(3);
});

test("a run that is deleted while its input is read is not found", async () => {
  const { threadId, runId } = await aRunOf(inputWith(anImage()));
  await eventually("the input is small", async () => (await storedBytes(threadId)).input < 2_000);
  const database = openTestDatabase(server.connectionString, { encryption: TEST_ENCRYPTION });
  const deleting = beforeStrings(database, () => api.remove(`/threads/${threadId}`));
  expect(await createRunRepository(deleting).find(EVERY_THREAD, { threadId, runId })).toBeUndefined();
  await database.close();
});

test("text of a caller that looks like a reference stays", async () => {
  const url = anImage();
  const first = await aRunOf(inputWith(url));
  await eventually("the input is small", async () => (await storedBytes(first.threadId)).input < 2_000);
  const [row] = await query<{ hash: string }>(
    server,
    "select unnest(strings) as hash from threadloom.runs where run_id = $1",
    [first.runId],
  );
  const lookalike = inputWith(url, `\u0001${row?.hash},${url.length + 2}\u0001`);
  await api.aFinishedRun(first.threadId, { assistant_id: "two-step", input: lookalike });
  const [second] = await api.runs(first.threadId);
  expect(await inputOf(first.threadId, second?.run_id ?? "")).toEqual(lookalike);
});
