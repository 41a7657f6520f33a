import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { saying, textsOf, type Api, type Refusal, type ThreadRecord } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { namesOf, openStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

const MISSING = "0197aaaa-0000-7000-8000-000000000000";
const HELLO = { assistant_id: "two-step", input: saying("hello") };
const ANSWERED = ["hello", "first", "second"];
const LATER = { ...HELLO, after_seconds: 3_600 };

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const batch = (...runs: object[]) => api.post<RunRecord[]>("/runs/batch", runs);
const refusedBatch = (...runs: object[]) => api.post<Refusal>("/runs/batch", runs);
const textsOn = async (threadId: string) => textsOf((await api.state(threadId)).values.messages);

/** The threads that a search by the metadata finds. */
const found = async (metadata: object) =>
  (await api.post<ThreadRecord[]>("/threads/search", { metadata })).body.map(({ thread_id }) => thread_id);

describe("a thread created by a run", () => {
  test.each(["", "/wait", "/stream"])("has the run's metadata, by POST …/runs%s", async (way) => {
    const metadata = { owner: randomUUID() };
    const threadId = randomUUID();
    const { status } = await fetch(`${server.url}/threads/${threadId}/runs${way}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...HELLO, metadata, if_not_exists: "create" }),
    });
    expect(status).toBe(200);
    expect(await found(metadata)).toEqual([threadId]);
    await api.untilQuiet(threadId);
  });

  test("has them also if the run names no thread, or comes in a batch", async () => {
    const metadata = { owner: randomUUID() };
    const { body } = await batch(...[1, 2].map(() => ({ ...HELLO, metadata, on_completion: "keep" })), {
      ...HELLO,
      metadata: { owner: "another" },
      on_completion: "keep",
    });
    const { body: alone } = await api.post<RunRecord>("/runs", { ...HELLO, metadata, on_completion: "keep" });
    const expected = [...body.slice(0, 2), alone].map(({ thread_id }) => thread_id);
    expect((await found(metadata)).sort()).toEqual(expected.sort());
  });

  test("differs from an existing thread, which keeps its own metadata", async () => {
    const threadId = await api.aThread({ metadata: { mine: 1 } });
    await api.aFinishedRun(threadId, { ...HELLO, metadata: { run: 1 }, if_not_exists: "create" });
    expect((await api.thread(threadId)).metadata).toMatchObject({ mine: 1 });
    expect((await api.thread(threadId)).metadata).not.toHaveProperty("run");
  });
});

describe("a run whose body names a thread", () => {
  test.each(["", "/wait", "/stream"])("runs on it by POST /runs%s", async (way) => {
    const threadId = await api.aThread();
    const body = { ...HELLO, thread_id: threadId };
    const answer =
      way === "/stream"
        ? await openStream(`${server.url}/runs/stream`, { body }).then(async (stream) => {
            expect(namesOf(await stream.rest())).toContain("values");
            return stream.headers;
          })
        : (await api.post(`/runs${way}`, body)).headers;
    expect(answer.get("content-location")).toMatch(new RegExp(`^/threads/${threadId}/runs/`));
    await api.untilQuiet(threadId);
    expect(await textsOn(threadId)).toEqual(ANSWERED);
  });

  test("continues from its state, or from the requested earlier checkpoint", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, HELLO);
    const checkpoint = (await api.state(threadId)).checkpoint!;
    await api.post("/runs/wait", { ...HELLO, thread_id: threadId });
    expect(await textsOn(threadId)).toEqual([...ANSWERED, ...ANSWERED]);
    await api.post("/runs/wait", {
      ...HELLO,
      input: saying("again"),
      thread_id: threadId,
      checkpoint_id: checkpoint.checkpoint_id,
    });
    expect(await textsOn(threadId)).toEqual([...ANSWERED, "again", "first", "second"]);
  });

  test("follows the thread's multitask strategy", async () => {
    const threadId = await api.aThread();
    await api.aRun(threadId, LATER);
    const refused = await api.post("/runs", { ...HELLO, thread_id: threadId, multitask_strategy: "reject" });
    expect(refused.status).toBe(409);
    expect(await api.runs(threadId)).toHaveLength(1);
  });

  test("creates it only if requested, and keeps it", async () => {
    const missing = await api.post<Refusal>("/runs", { ...HELLO, thread_id: MISSING });
    expect([missing.status, missing.body.detail]).toEqual([404, expect.stringContaining(MISSING)]);
    const threadId = crypto.randomUUID();
    await api.post("/runs/wait", {
      ...HELLO,
      thread_id: threadId,
      if_not_exists: "create",
      on_completion: "delete",
    });
    expect(await textsOn(threadId)).toEqual(ANSWERED);
  });

  test("is refused if the id is invalid", async () => {
    const { status, body } = await api.post<Refusal>("/runs", { ...HELLO, thread_id: "mine" });
    expect([status, body.detail]).toEqual([422, expect.stringContaining("thread_id")]);
  });
});

describe("a batch", () => {
  test("puts each run on its named thread, in order, and the others on threads of their own", async () => {
    const [one, two] = [await api.aThread(), await api.aThread()];
    const named = [two, undefined, one, two, null];
    const { status, body } = await batch(
      ...named.map((thread_id, index) => ({ ...HELLO, input: saying(`${index}`), thread_id })),
    );
    expect(status).toBe(200);
    expect(body.map(({ thread_id }) => thread_id)).toEqual([
      two,
      expect.not.stringMatching(`${one}|${two}`),
      one,
      two,
      expect.not.stringMatching(`${one}|${two}`),
    ]);
    await api.untilQuiet(one);
    await api.untilQuiet(two);
    expect(await textsOn(one)).toEqual(["2", "first", "second"]);
    expect(await textsOn(two)).toEqual(["0", "first", "second", "3", "first", "second"]);
  });

  test("creates a missing thread once for two runs that may create it", async () => {
    const run = { ...HELLO, thread_id: crypto.randomUUID(), if_not_exists: "create" };
    const { body } = await batch(run, run);
    expect(body.map(({ thread_id }) => thread_id)).toEqual([run.thread_id, run.thread_id]);
    await api.untilQuiet(run.thread_id);
    expect(await textsOn(run.thread_id)).toEqual([...ANSWERED, ...ANSWERED]);
  });

  test.each([
    [404, "a thread is missing", { thread_id: MISSING }],
    [404, "an assistant is missing", { assistant_id: MISSING }],
    [404, "a checkpoint is missing", { checkpoint_id: MISSING }],
    [409, "a thread is busy for one that would not wait", { multitask_strategy: "reject" }],
  ])("is refused whole with %d if %s", async (status, _, fault) => {
    const [free, busy] = [await api.aThread(), await api.aThread()];
    await api.aRun(busy, LATER);
    const answer = await refusedBatch({ ...LATER, thread_id: free }, { ...LATER, thread_id: busy, ...fault });
    expect([answer.status, typeof answer.body.detail]).toEqual([status, "string"]);
    expect(await api.runs(free)).toEqual([]);
    expect(await api.thread(free)).toMatchObject({ status: "idle" });
    expect(await api.runs(busy)).toHaveLength(1);
  });

  test("ends the waiting runs of a thread for a run that replaces them", async () => {
    const threadId = await api.aThread();
    const { run_id: waiting } = await api.aRun(threadId, LATER);
    const { body } = await batch({ ...HELLO, thread_id: threadId, multitask_strategy: "interrupt" });
    expect(body).toHaveLength(1);
    expect(await api.run(threadId, waiting)).toMatchObject({ status: "interrupted" });
    await api.untilQuiet(threadId);
    expect(await textsOn(threadId)).toEqual(ANSWERED);
  });

  test("does not deadlock with a batch that names the same threads in reverse", async () => {
    const threads = await Promise.all(Array.from({ length: 20 }, () => api.aThread()));
    const runs = threads.map((thread_id) => ({ ...LATER, thread_id }));
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, turn) => batch(...(turn % 2 === 0 ? runs : runs.toReversed()))),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const threadId of threads.slice(0, 3)) expect(await api.runs(threadId)).toHaveLength(8);
  });
});
