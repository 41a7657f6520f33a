import { afterAll, beforeAll, expect, test } from "vitest";
import type { Caller } from "../../../src/access/caller.ts";
import {
  assistantCountBody,
  assistantCreateBody,
  assistantPatchBody,
  assistantSearchBody,
  assistantVersionsBody,
} from "../../../src/api/assistants/schemas.ts";
import { createAssistantService, type AssistantService } from "../../../src/api/assistants/service.ts";
import { caller, ownersOnly } from "../../helpers/access.ts";
import { startAssistants } from "../../helpers/parts.ts";

const MINE = "00000000-0000-7000-8000-000000000001";
const THEIRS = "00000000-0000-7000-8000-000000000002";
const patch = assistantPatchBody.parse({ name: "Second" });
const [me, them] = [caller("me"), caller("them")];

let server: Awaited<ReturnType<typeof startAssistants>>;
let service: AssistantService;
const deletedThreads: string[] = [];
beforeAll(async () => {
  server = await startAssistants();
  service = createAssistantService({
    database: server.database,
    authorize: ownersOnly,
    graphs: server.graphs,
    deleteThreads: async (_by, threadIds) => deletedThreads.push(...threadIds),
  });
  for (const [by, assistant_id, owner] of [
    [me, MINE, "me"],
    [them, THEIRS, "them"],
  ] as const) {
    await service.create(
      by,
      assistantCreateBody.parse({ graph_id: "agent", assistant_id, metadata: { owner } }),
    );
    await service.update(by, assistant_id, patch);
  }
});
afterAll(async () => {
  await server.close();
});

const page = assistantVersionsBody.parse({});
const search = assistantSearchBody.parse({});
const all = assistantCountBody.parse({});
const named = (id: string, version?: number) => expect.objectContaining({ assistant_id: id, version });

test("a caller who may see an assistant can read, search, count and change it", async () => {
  expect(await service.get(me, MINE)).toEqual(named(MINE, 2));
  expect((await service.search(me, search)).items).toEqual([named(MINE, 2)]);
  expect(await service.count(me, all)).toBe(1);
  expect(await service.versions(me, MINE, page)).toEqual({
    items: [named(MINE, 2), named(MINE, 1)],
    total: 2,
    offset: 0,
  });
  expect(await service.setLatest(me, MINE, 1)).toEqual(named(MINE, 1));
});

test.each<[string, (by: Caller, id: string) => Promise<unknown>]>([
  ["read", (by, id) => service.get(by, id)],
  ["updated", (by, id) => service.update(by, id, patch)],
  ["set to a version", (by, id) => service.setLatest(by, id, 1)],
  ["asked for its versions", (by, id) => service.versions(by, id, page)],
  ["drawn", (by, id) => service.drawing(by, id, false)],
  ["asked for its schemas", (by, id) => service.schemas(by, id)],
  ["asked for its subgraphs", (by, id) => service.subgraphs(by, id, undefined, false)],
  ["deleted", (by, id) => service.remove(by, id, { withThreads: true })],
])("a caller who may not see an assistant gets a 404 when it is %s", async (_what, ask) => {
  await expect(ask(me, THEIRS)).rejects.toMatchObject({
    kind: "not_found",
    message: expect.stringContaining(THEIRS),
  });
  expect(await service.get(them, THEIRS)).toEqual(expect.objectContaining({ name: "Second", version: 2 }));
  expect(deletedThreads).toEqual([]);
});

test("searches, counts and pages beyond the last omit hidden assistants", async () => {
  expect(await service.search(me, { ...search, offset: 5 })).toEqual({
    items: [],
    total: 1,
    offset: 5,
  });
  expect(await service.count(me, { ...all, metadata: { owner: "them" } })).toBe(0);
  expect(await service.count(caller("nobody"), all)).toBe(0);
});

test("the id of a hidden assistant is taken, with if_exists raise or do_nothing", async () => {
  const again = assistantCreateBody.parse({ graph_id: "agent", assistant_id: THEIRS });
  await expect(service.create(me, again)).rejects.toMatchObject({ kind: "conflict" });
  await expect(service.create(me, { ...again, if_exists: "do_nothing" })).rejects.toMatchObject({
    kind: "conflict",
  });
});

test("only those of an assistant's threads are deleted with it that its caller may delete", async () => {
  const threads = {
    me: "00000000-0000-7000-8000-00000000000a",
    them: "00000000-0000-7000-8000-00000000000b",
  };
  for (const [owner, threadId] of Object.entries(threads)) {
    await server.database.query("insert into threadloom.threads (thread_id, metadata) values ($1, $2)", [
      threadId,
      { owner, assistant_id: MINE },
    ]);
  }
  await service.remove(me, MINE, { withThreads: true });
  expect(deletedThreads).toEqual([threads.me]);
});
