import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openThreadsRoom, type State, type Thread, type ThreadsRoom } from "./threads-room.ts";

let room: ThreadsRoom;
let id: string;
let states: State[];

const human = (content: string) => ({ messages: [{ role: "user", content }] });
const read = async <Body>(path: string) => (await room.request<Body>("GET", path)).body;
const history = async (body: Record<string, unknown>) =>
  (await room.request<State[]>("POST", `/threads/${id}/history`, body)).body;
const idOf = (state: State | undefined) => state?.checkpoint?.checkpoint_id;

beforeAll(async () => {
  room = await openThreadsRoom();
  id = (await room.aThread()).thread_id;
  for (const content of ["one", "two", "three"]) await room.run("two-step", id, human(content));
  states = await read<State[]>(`/threads/${id}/history?limit=1000`);
});
afterAll(() => room.close());

describe("the state of a thread", () => {
  it("is empty for a thread without runs, and that is no error", async () => {
    const { thread_id: empty } = await room.aThread({ metadata: { graph_id: "two-step" } });
    const expected = {
      values: {},
      next: [],
      tasks: [],
      metadata: {},
      created_at: null,
      checkpoint: null,
      parent_checkpoint: null,
      interrupts: [],
    };
    expect(await room.request("GET", `/threads/${empty}/state`)).toMatchObject({
      status: 200,
      body: expected,
    });
    expect(
      await room.request("POST", `/threads/${empty}/state/checkpoint`, { checkpoint: {} }),
    ).toMatchObject({
      status: 200,
      body: expected,
    });
    expect(await read(`/threads/${empty}/history`)).toEqual([]);
  });

  it("is the named one, or the newest if no checkpoint is named", async () => {
    expect(await read(`/threads/${id}/state`)).toEqual(states[0]);
    const at = (checkpoint: unknown) =>
      room.request<State>("POST", `/threads/${id}/state/checkpoint`, { checkpoint });
    for (const latest of [
      {},
      null,
      { thread_id: randomUUID() },
      { checkpoint_ns: "", checkpoint_id: null },
    ]) {
      expect((await at(latest)).body).toEqual(states[0]);
    }
    expect((await at(states[4]?.checkpoint)).body).toEqual(states[4]);
    expect(await read(`/threads/${id}/state/${idOf(states[4]) ?? ""}`)).toEqual(states[4]);
  });

  it("causes a 404 for a missing checkpoint", async () => {
    const missing = randomUUID();
    for (const answer of [
      await room.request("GET", `/threads/${id}/state/${missing}`),
      await room.request("POST", `/threads/${id}/state/checkpoint`, {
        checkpoint: { checkpoint_id: missing },
      }),
    ]) {
      expect([answer.status, answer.body]).toEqual([404, { detail: `Checkpoint '${missing}' not found.` }]);
    }
    const bad = await room.request<{ detail: string }>("GET", `/threads/${id}/state/abc`);
    expect([bad.status, bad.body.detail]).toEqual([422, expect.stringContaining("checkpoint_id")]);
  });

  it("is reduced to the selected fields, which may be single keys of the values", async () => {
    const select = async (...fields: string[]) =>
      await read(`/threads/${id}/state?${fields.map((field) => `select=${field}`).join("&")}`);
    expect(await select("next", "values")).toEqual({ values: states[0]?.values, next: [] });
    const { thread_id: other } = await room.aThread();
    await room.run("counter", other, human("one"));
    expect(await read(`/threads/${other}/state?select=["values.count","next"]`)).toEqual({
      values: { count: 1 },
      next: [],
    });
    expect(await select("nothing")).toEqual({});
    const posted = await room.request("POST", `/threads/${id}/state/checkpoint`, {
      checkpoint: {},
      select: ["next"],
    });
    expect(posted.body).toEqual({ next: [] });
  });

  it("is reduced in the same way by every route that returns states", async () => {
    const { thread_id: counted } = await room.aThread();
    await room.run("counter", counted, human("one"));
    const checkpoint_id = idOf(await read<State>(`/threads/${counted}/state`)) ?? "";
    const select = ["values.count", "created_at"];
    const query = select.map((field) => `select=${field}`).join("&");
    const cut = { values: { count: 1 }, created_at: expect.any(String) };
    const at = `/threads/${counted}/state/checkpoint`;
    const history = `/threads/${counted}/history`;
    expect(await read(`/threads/${counted}/state?${query}`)).toEqual(cut);
    expect(await read(`/threads/${counted}/state/${checkpoint_id}?${query}`)).toEqual(cut);
    expect((await room.request("POST", at, { checkpoint: { checkpoint_id }, select })).body).toEqual(cut);
    expect((await room.request<State[]>("POST", history, { limit: 1, select })).body).toEqual([cut]);
    expect((await read<State[]>(`${history}?limit=1&${query}`))[0]).toEqual(cut);
    const { thread_id: empty } = await room.aThread();
    expect(await read(`/threads/${empty}/state?${query}`)).toEqual({ values: {}, created_at: null });
  });

  it("can be read after its graph is no longer deployed", async () => {
    const { body: copy } = await room.request<Thread>("POST", `/threads/${id}/copy`);
    await room.request("PATCH", `/threads/${copy.thread_id}`, { metadata: { graph_id: "gone" } });
    const state = await read<State>(`/threads/${copy.thread_id}/state`);
    expect([state.values, state.next]).toEqual([states[0]?.values, []]);
    expect((await read<Thread>(`/threads/${copy.thread_id}`)).values).toEqual(states[0]?.values);
  });

  it("contains the states of subgraphs only if requested", async () => {
    const { thread_id: nested } = await room.aThread();
    await room.run("nested-approval", nested, { text: "a" });
    const flat = await read<State>(`/threads/${nested}/state?subgraphs=false`);
    expect(flat.tasks[0]).toMatchObject({ name: "inner", state: null, checkpoint: { thread_id: nested } });
    const deep = await read<State>(`/threads/${nested}/state?subgraphs=1`);
    expect(deep.tasks[0]).toMatchObject({
      checkpoint: null,
      state: { next: ["confirm"], tasks: [{ interrupts: [{ value: "Confirm?" }] }] },
    });
  });
});

describe("the history of a thread", () => {
  it("lists the states from the newest to the first, each with its parent", () => {
    expect(states.length).toBe(12);
    expect(states.map((state) => state.parent_checkpoint?.checkpoint_id ?? null)).toEqual([
      ...states.slice(1).map(idOf),
      null,
    ]);
    expect(states.map(({ next }) => next[0] ?? null).slice(0, 4)).toEqual([
      null,
      "second",
      "first",
      "__start__",
    ]);
    expect(states[1]?.tasks[0]).toMatchObject({
      name: "second",
      result: { messages: [{ content: "second" }] },
    });
  });

  it("has pages, by a limit and by a checkpoint in any form as `before`", async () => {
    expect(await history({})).toEqual(states.slice(0, 10));
    expect(await history({ limit: 3 })).toEqual(states.slice(0, 3));
    const checkpoint = states[2]?.checkpoint;
    for (const before of [
      idOf(states[2]),
      { configurable: { checkpoint_id: idOf(states[2]) } },
      { configurable: { ...checkpoint } },
      checkpoint,
      { thread_id: id, checkpoint_id: idOf(states[2]) },
    ]) {
      expect(await history({ limit: 4, before })).toEqual(states.slice(3, 7));
    }
    for (const before of [null, {}, { configurable: {} }, { thread_id: id }]) {
      expect(await history({ limit: 1, before })).toEqual(states.slice(0, 1));
    }
    const before = idOf(states[2]) ?? "";
    expect(await read(`/threads/${id}/history?limit=4&before=${before}`)).toEqual(states.slice(3, 7));
    expect(await read(`/threads/${id}/history?limit=&before=`)).toEqual(states.slice(0, 10));
  });

  it("can be limited to metadata, or to one checkpoint", async () => {
    const inputs = states.filter((state) => state.metadata.source === "input");
    expect(await history({ metadata: { source: "input" } })).toEqual(inputs);
    expect(inputs).toHaveLength(3);
    expect(await history({ checkpoint: states[5]?.checkpoint })).toEqual([states[5]]);
  });

  it("of a namespace without checkpoints is empty, also with segments joined by NUL", async () => {
    expect(await history({ checkpoint: { checkpoint_ns: "inner:1" } })).toEqual([]);
    expect(await history({ checkpoint: { checkpoint_ns: "inner:1\0inner:2" } })).toEqual([]);
  });

  it("is found with a namespace whose segments are joined by NUL", async () => {
    const { thread_id: deep } = await room.aThread();
    await room.run("nested-approval", deep, { text: "a" });
    const place = (await read<State>(`/threads/${deep}/state`)).tasks[0]?.checkpoint as {
      checkpoint_ns: string;
    };
    const { body } = await room.request<State[]>("POST", `/threads/${deep}/history`, {
      limit: 1,
      checkpoint: { checkpoint_ns: place.checkpoint_ns.replaceAll("|", "\0") },
    });
    expect(body).toHaveLength(1);
  });

  it.each([
    ["limit", { limit: 0 }],
    ["limit", { limit: 1001 }],
    ["before", { before: "abc" }],
    ["metadata", { metadata: 3 }],
    ["checkpoint", { checkpoint: { checkpoint_id: "abc" } }],
  ])("names the invalid field %s of a request", async (field, body) => {
    const answer = await room.request<{ detail: string }>("POST", `/threads/${id}/history`, body);
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(field)]);
  });
});
