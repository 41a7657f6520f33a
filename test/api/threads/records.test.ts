import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createThreadRepository } from "../../../src/api/threads/repository.ts";
import { EVERY_THREAD, everyThreadWith } from "../../helpers/access.ts";
import { eventually } from "../../helpers/conditions.ts";
import { openThreadsRoom, type Thread, type ThreadsRoom } from "./threads-room.ts";

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

const human = (content: string) => ({ messages: [{ role: "user", content }] });
const countThreads = async (): Promise<number> =>
  (await room.request<number>("POST", "/threads/count", {})).body;

describe("creating a thread", () => {
  it("answers with the whole record of an idle thread without runs", async () => {
    const { status, body } = await room.request<Thread>("POST", "/threads", { metadata: { user: "ada" } });
    expect(status).toBe(200);
    expect(body).toEqual({
      thread_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/) as string,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/) as string,
      updated_at: body.created_at,
      state_updated_at: body.created_at,
      metadata: { user: "ada" },
      config: {},
      status: "idle",
      values: null,
      interrupts: {},
    });
  });

  it("accepts a body that is empty, null in every field, or missing", async () => {
    const nulls = { thread_id: null, metadata: null, if_exists: null, ttl: null, supersteps: null, other: 1 };
    for (const body of [{}, nulls, undefined]) {
      expect((await room.request("POST", "/threads", body)).status).toBe(200);
    }
  });

  it("accepts an id, stores it in lower case, and refuses it a second time", async () => {
    const id = randomUUID();
    const first = await room.request<Thread>("POST", "/threads", { thread_id: id.toUpperCase() });
    expect(first.body.thread_id).toBe(id);
    const second = await room.request("POST", "/threads", { thread_id: id });
    expect(second.status).toBe(409);
    expect(second.body).toEqual({ detail: `Thread '${id}' already exists.` });
  });

  it("returns the existing thread with if_exists do_nothing", async () => {
    const there = await room.aThread({ metadata: { first: true } });
    const again = await room.request("POST", "/threads", {
      thread_id: there.thread_id,
      if_exists: "do_nothing",
      metadata: { second: true },
    });
    expect(again.status).toBe(200);
    expect(again.body).toEqual(there);
  });

  it("gives an id to one of many concurrent requests", async () => {
    const id = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => room.request("POST", "/threads", { thread_id: id })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(19).fill(409)]);
  });

  it.each([
    ["thread_id", { thread_id: "abc" }],
    ["metadata", { metadata: "abc" }],
    ["metadata", { metadata: [1] }],
    ["metadata", { metadata: { key: "nul \0" } }],
    ["metadata", { metadata: { "key \ud800": 1 } }],
    ["if_exists", { if_exists: "maybe" }],
    ["ttl", { ttl: { ttl: -1 } }],
    ["ttl", { ttl: { ttl: 1e300 } }],
    ["ttl", { ttl: { ttl: 10, strategy: "shred" } }],
    ["supersteps", { supersteps: [{ updates: [] }] }],
  ])("names the invalid field %s of a body, and stores nothing", async (field, body) => {
    const before = await countThreads();
    const answer = await room.request<{ detail: string }>("POST", "/threads", body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toContain(field);
    expect(await countThreads()).toBe(before);
  });
});

describe("reading, updating and deleting a thread", () => {
  it("reads the created thread with the values of its newest checkpoint", async () => {
    const { thread_id: id } = await room.aThread();
    await room.run("counter", id, human("hello"));
    const { body } = await room.request<Thread>("GET", `/threads/${id}`);
    expect(body.values).toMatchObject({ count: 1, messages: [{ type: "human", content: "hello" }] });
  });

  it("merges metadata and leaves the other fields alone", async () => {
    const thread = await room.aThread({ metadata: { a: 1, b: { c: 2 } } });
    await eventually("another millisecond", () => Date.now() > Date.parse(thread.updated_at) + 1);
    const { status, body } = await room.request<Thread>("PATCH", `/threads/${thread.thread_id}`, {
      metadata: { b: 3, d: null },
    });
    expect(status).toBe(200);
    expect(body).toEqual({
      ...thread,
      metadata: { a: 1, b: 3, d: null },
      updated_at: body.updated_at,
    });
    expect(body.updated_at > thread.updated_at).toBe(true);
  });

  it("answers 204 to an update that prefers no record", async () => {
    const { thread_id: id } = await room.aThread();
    const { status, body } = await room.request(
      "PATCH",
      `/threads/${id}`,
      { metadata: { a: 1 } },
      {
        prefer: "return=minimal",
      },
    );
    expect([status, body]).toEqual([204, undefined]);
    expect((await room.request<Thread>("GET", `/threads/${id}`)).body.metadata).toEqual({ a: 1 });
  });

  it("keeps a time to live, shows it on request, and restarts it with an update", async () => {
    const { thread_id: id } = await room.aThread({ ttl: { ttl: 60, strategy: "keep_latest" } });
    const { body } = await room.request<Thread>("GET", `/threads/${id}?include=ttl`);
    expect(body.ttl).toMatchObject({ strategy: "keep_latest", ttl_minutes: 60 });
    expect(Date.parse(body.ttl?.expires_at ?? "") - Date.parse(body.created_at)).toBe(60 * 60_000);
    expect((await room.request<Thread>("GET", `/threads/${id}`)).body).not.toHaveProperty("ttl");

    const patched = await room.request<Thread>("PATCH", `/threads/${id}`, { ttl: 1.5 });
    expect(patched.body.ttl).toMatchObject({ strategy: "delete", ttl_minutes: 1.5 });
    expect(Date.parse(patched.body.ttl?.expires_at ?? "")).toBeLessThan(
      Date.parse(body.ttl?.expires_at ?? ""),
    );
  });

  it("deletes a thread with its checkpoints, and announces that", async () => {
    const { thread_id: id } = await room.aThread();
    await room.run("counter", id, human("hello"));
    const { status, body } = await room.request("DELETE", `/threads/${id}`);
    expect([status, body]).toEqual([204, undefined]);
    expect(room.deleted).toContain(id);
    expect(await room.checkpoints.readHead(id)).toBeUndefined();
  });

  it("answers 404 for a deleted or unknown thread", async () => {
    const { thread_id: id } = await room.aThread();
    await room.request("DELETE", `/threads/${id}`);
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["PATCH", "", {}],
      ["DELETE", "", undefined],
      ["POST", "/copy", undefined],
      ["GET", "/storage", undefined],
      ["GET", "/state", undefined],
      ["GET", `/state/${randomUUID()}`, undefined],
      ["POST", "/state/checkpoint", { checkpoint: {} }],
      ["POST", "/state", { values: {} }],
      ["PATCH", "/state", { metadata: {} }],
      ["GET", "/history", undefined],
      ["POST", "/history", {}],
    ] as const) {
      const answer = await room.request(method, `/threads/${id}${path}`, body);
      expect([method, path, answer.status, answer.body]).toEqual([
        method,
        path,
        404,
        { detail: `Thread '${id}' not found.` },
      ]);
    }
  });

  it("refuses a path without a UUID", async () => {
    const { status, body } = await room.request<{ detail: string }>("GET", "/threads/abc");
    expect(status).toBe(422);
    expect(body.detail).toContain("thread_id");
  });
});

describe("pruning threads", () => {
  const makeBusy = (id: string) =>
    room.database.query(
      "update threadloom.threads set unfinished_runs = 1, status = 'busy' where thread_id = $1",
      [id],
    );

  it("deletes the existing ones without a running run", async () => {
    const [one, two, busy] = [await room.aThread(), await room.aThread(), await room.aThread()];
    await makeBusy(busy.thread_id);
    const ids = [one, two, busy].map((thread) => thread.thread_id);
    const { body } = await room.request("POST", "/threads/prune", { thread_ids: [...ids, randomUUID()] });
    expect(body).toEqual({ pruned_count: 2 });
    const statuses = await Promise.all(
      ids.map(async (id) => (await room.request("GET", `/threads/${id}`)).status),
    );
    expect(statuses).toEqual([404, 404, 200]);
  });

  it("keeps only the latest state of each with keep_latest", async () => {
    const { thread_id: id } = await room.aThread();
    await room.run("counter", id, human("one"));
    await room.run("counter", id, human("two"));
    const before = await room.request<{ values: unknown }>("GET", `/threads/${id}/state`);
    const { body } = await room.request("POST", "/threads/prune", {
      thread_ids: [id],
      strategy: "keep_latest",
    });
    expect(body).toEqual({ pruned_count: 1 });
    const after = await room.request<{ values: unknown }>("GET", `/threads/${id}/state`);
    expect(after.body.values).toEqual(before.body.values);
    expect((await room.request<unknown[]>("POST", `/threads/${id}/history`, {})).body).toHaveLength(1);
  });
});

describe("copying a thread", () => {
  it("creates a thread with the same metadata, values and history under its own id", async () => {
    const original = await room.aThread({ metadata: { user: "ada" } });
    await room.run("counter", original.thread_id, human("one"));
    const { status, body: copy } = await room.request<Thread>("POST", `/threads/${original.thread_id}/copy`);
    expect(status).toBe(200);
    const now = (await room.request<Thread>("GET", `/threads/${original.thread_id}`)).body;
    expect(copy.thread_id).not.toBe(original.thread_id);
    expect(copy).toMatchObject({ metadata: now.metadata, values: now.values, status: now.status });

    type States = { values: unknown; checkpoint: { thread_id: string }; metadata: { thread_id: string } }[];
    const [theirs, ours] = await Promise.all(
      [original.thread_id, copy.thread_id].map(async (id) => {
        return (await room.request<States>("POST", `/threads/${id}/history`, { limit: 100 })).body;
      }),
    );
    expect(ours?.map(({ values }) => values)).toEqual(theirs?.map(({ values }) => values));
    for (const state of ours ?? []) {
      expect([state.checkpoint.thread_id, state.metadata.thread_id]).toEqual([
        copy.thread_id,
        copy.thread_id,
      ]);
    }
  });

  it("copies one moment of a thread whose run ends meanwhile", async () => {
    const { thread_id: id } = await room.aThread();
    const set = (status: string) =>
      room.database.query("update threadloom.threads set status = $2 where thread_id = $1", [id, status]);
    await set("interrupted");
    const { database } = room;
    let statements = 0;
    const meanwhile = {
      encryption: database.encryption,
      async query<Row>(text: string, values?: unknown[]): Promise<Row[]> {
        const rows = await database.query<Row>(text, values);
        if ((statements += 1) === 1) await set("busy");
        return rows;
      },
    };
    const copy = await createThreadRepository(database).insertCopy(
      meanwhile as unknown as typeof database,
      EVERY_THREAD,
      everyThreadWith({ metadata: {} }),
      id,
    );
    expect(copy).toMatchObject({ was_busy: false });
    expect((await room.request<Thread>("GET", `/threads/${copy?.thread_id}`)).body.status).toBe(
      "interrupted",
    );
  });

  it("creates an independent thread", async () => {
    const { thread_id: id } = await room.aThread();
    await room.run("counter", id, human("one"));
    const { body: copy } = await room.request<Thread>("POST", `/threads/${id}/copy`);
    await room.run("counter", copy.thread_id, human("two"));
    await room.request("DELETE", `/threads/${id}`);
    const { body } = await room.request<Thread>("GET", `/threads/${copy.thread_id}`);
    expect(body.values).toMatchObject({ count: 2, messages: [{ content: "one" }, { content: "two" }] });
  });
});

describe("the storage of a thread", () => {
  it("says how many bytes its checkpoints occupy", async () => {
    const { thread_id: id } = await room.aThread();
    const empty = await room.request("GET", `/threads/${id}/storage`);
    expect(empty.body).toMatchObject({ thread_id: id, total_bytes: 0, checkpoints: { count: 0, bytes: 0 } });
    await room.run("counter", id, human("hello"));
    const { body } = await room.request<{ total_bytes: number; checkpoints: { count: number } }>(
      "GET",
      `/threads/${id}/storage`,
    );
    expect(body.total_bytes).toBeGreaterThan(0);
    expect(body.checkpoints.count).toBe(3);
  });
});
