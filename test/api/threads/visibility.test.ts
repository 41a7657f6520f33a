import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Permission } from "../../../src/access/visibility.ts";
import { createThreadRepository, type ThreadRepository } from "../../../src/api/threads/repository.ts";
import {
  historyBody,
  stateUpdateBody,
  threadCountBody,
  threadCreateBody,
  threadPatchBody,
  threadSearchBody,
} from "../../../src/api/threads/schemas.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { createThreadSearcher, type ThreadSearcher } from "../../../src/api/threads/search/search.ts";
import { createThreadService, type ThreadService } from "../../../src/api/threads/service.ts";
import { configurationsOf } from "../../../src/api/threads/state/graphs.ts";
import { deleteIdle, pruneIdle } from "../../../src/api/threads/upkeep.ts";
import { createRetention } from "../../../src/api/threads/retention.ts";
import { caller, EVERY_THREAD, everyThreadWith, ownedBy, ownersOnly } from "../../helpers/access.ts";

import { openThreadsRoom, type ThreadsRoom } from "./threads-room.ts";

const logger = pino({ level: "silent" });
const [me, them] = [caller("me"), caller("them")];
const granted = { metadata: { a: 1 } };
const [mine, theirs] = [ownedBy("threads", "me", granted), ownedBy("threads", "them", granted)];

let room: ThreadsRoom;
let repository: ThreadRepository;
let searcher: ThreadSearcher;
let service: ThreadService;
let ids: { mine: string; theirs: string };
/** The whole row, because no field of a hidden thread may change. */
const rowOf = async (threadId: string): Promise<unknown> =>
  (
    await room.database.query<{ row: unknown }>(
      "select to_jsonb(t) || jsonb_build_object('xmin', xmin::text) as row from threadloom.threads t where thread_id = $1",
      [threadId],
    )
  )[0]?.row;
const countThreads = async (): Promise<number> =>
  Number((await room.database.query<{ n: string }>("select count(*) as n from threadloom.threads"))[0]?.n);

beforeAll(async () => {
  room = await openThreadsRoom();
  const { database, checkpoints, graphs } = room;
  repository = createThreadRepository(database);
  searcher = createThreadSearcher(database);
  service = createThreadService({
    database,
    authorize: ownersOnly,
    checkpoints,
    ends: createRunEnds(database, checkpoints),
    graphs,
    logger,
  });
});
afterAll(() => room.close());
beforeEach(async () => {
  await room.database.query("delete from threadloom.threads");
  const make = async (owner: string): Promise<string> => {
    const { thread_id: id } = await room.aThread({
      metadata: { owner },
      ttl: { ttl: 60, strategy: "delete" },
    });
    await room.run("counter", id, { count: 3 });
    return id;
  };
  ids = { mine: await make("me"), theirs: await make("them") };
});

const page = {
  limit: 10,
  offset: 0,
  sortBy: "created_at",
  sortOrder: "desc",
} as const;
const unfiltered = { metadata: undefined, status: undefined };
const both = () => [ids.mine, ids.theirs];
const idsOf = (rows: readonly { thread_id: string }[] | undefined) => rows?.map((row) => row.thread_id);

describe("the SQL of threads", () => {
  type Ask = (visibility: Permission<"threads", "update">, threadId: string) => Promise<unknown>;
  const found = expect.objectContaining({ record: expect.stringContaining('"thread_id"') });
  // The answer of each method for a visible thread and for a hidden one.
  it.each<[method: string, ask: Ask, seen: unknown, hidden: unknown]>([
    ["find", (by, id) => repository.find(by, id), found, undefined],
    [
      "get",
      (by, id) => repository.get(by, id).catch((error: { kind: string }) => error.kind),
      found,
      "not_found",
    ],
    [
      "standing",
      (by, id) => repository.standing(by, id).catch((error: { kind: string }) => error.kind),
      expect.objectContaining({ graphId: "counter", busy: false }),
      "not_found",
    ],
    ["patch", (by, id) => repository.patch(by, id, undefined), found, undefined],
    [
      "insertCopy",
      (by, id) => repository.insertCopy(room.database, by, everyThreadWith({ metadata: {} }), id),
      found,
      undefined,
    ],
    ["pruneIdle", (by, id) => pruneIdle(room.database, room.checkpoints, by, id), true, false],
    [
      "deleteIdle",
      async (by, id) => (await deleteIdle(room.database, room.checkpoints, by, [id, randomUUID()])).length,
      1,
      0,
    ],
    ["count", (by, id) => searcher.count(by, { ...unfiltered, ids: [id] }), 1, 0],
    [
      "page of those that match",
      async (by, id) => {
        const { rows, total } = await searcher.page(by, { ...page, ...unfiltered, ids: [id] });
        return { rows: rows.length, total };
      },
      { rows: 1, total: 1 },
      { rows: 0, total: 0 },
    ],
    [
      "page beyond the last",
      async (by, id) => (await searcher.page(by, { ...page, ...unfiltered, ids: [id], offset: 5 })).total,
      1,
      0,
    ],
    [
      "candidates",
      async (by, id) => (await searcher.candidates(by, { ...page, ...unfiltered, ids: [id] }, 10))?.length,
      1,
      0,
    ],
    ["configurations", async (by, id) => (await configurationsOf(room.database, by, [id])).size, 1, 0],
  ])("hides by %s", async (_method, ask, seen, hidden) => {
    const [before, many] = [await rowOf(ids.theirs), await countThreads()];
    expect(await ask(mine, ids.theirs)).toEqual(hidden);
    expect([await rowOf(ids.theirs), await countThreads()]).toEqual([before, many]);
    expect(await ask(mine, ids.mine)).toEqual(seen);
  });

  it("hides in the page of all threads, its total, and the number of threads to check", async () => {
    expect(idsOf((await searcher.page(mine, { ...page, ...unfiltered })).rows)).toEqual([ids.mine]);
    expect((await searcher.page(mine, { ...page, ...unfiltered, offset: 5 })).total).toBe(1);
    expect(idsOf(await searcher.candidates(mine, { ...page, ...unfiltered }, 1))).toEqual([ids.mine]);
    expect(await searcher.candidates(EVERY_THREAD, { ...page, ...unfiltered }, 1)).toBeUndefined();
    expect((await searcher.page(mine, { ...page, metadata: undefined, status: "idle" })).total).toBe(1);
  });

  it("writes no outcome of a hidden thread", async () => {
    const outcome = { status: "interrupted", interrupts: "{}" } as const;
    const before = await rowOf(ids.theirs);
    await repository.recordOutcome(mine, ids.theirs, outcome);
    expect(await rowOf(ids.theirs)).toEqual(before);
    await repository.recordOutcome(theirs, ids.theirs, outcome);
    expect(await rowOf(ids.theirs)).toMatchObject({ status: "interrupted" });
  });

  it.each(["delete", "keep_latest"] as const)("skips hidden expired threads: %s", async (strategy) => {
    const { database, checkpoints } = room;
    await database.query(
      "update threadloom.threads set ttl_strategy = $1, expires_at = now() - interval '1 day'",
      [strategy],
    );
    const before = await rowOf(ids.theirs);
    const retention = createRetention({
      database,
      authorize: async () => mine as never,
      checkpoints,
      logger,
    });
    expect(await retention.sweep(100)).toMatchObject({
      [strategy === "delete" ? "deleted" : "pruned"]: 1,
      failed: 0,
    });
    expect(await rowOf(ids.theirs)).toEqual(before);
  });
});

describe("a caller who may not see a thread", () => {
  const body = threadPatchBody.parse({ metadata: { a: 1 } });
  const history = historyBody.parse({});
  const update = stateUpdateBody.parse({ values: { count: 1 } });
  it.each<[what: string, ask: (id: string) => Promise<unknown>]>([
    ["reads it", (id) => service.records.read(me, id)],
    ["patches it", (id) => service.records.patch(me, id, body)],
    ["copies it", (id) => service.records.copy(me, id)],
    ["deletes it", (id) => service.upkeep.delete(me, id)],
    ["asks for its bytes", (id) => service.upkeep.storage(me, id)],
    ["reads its state", (id) => service.states.read(me, id, {})],
    ["reads its history", (id) => service.states.history(me, id, history).next()],
    ["updates its state", (id) => service.states.update(me, id, update)],
    ["patches its checkpoint", (id) => service.states.patchMetadata(me, id, { a: 1 })],
    [
      "asks for its values",
      (id) => service.states.valuesOfRun(mine, { threadId: id, runId: randomUUID() }, me),
    ],
  ])("gets a 404 when the caller %s", async (_what, ask) => {
    const [before, many] = [await rowOf(ids.theirs), await countThreads()];
    const state = await service.states.read(them, ids.theirs, {});
    await expect(ask(ids.theirs)).rejects.toMatchObject({
      kind: "not_found",
      message: expect.stringContaining(ids.theirs),
    });
    expect([await rowOf(ids.theirs), await countThreads()]).toEqual([before, many]);
    expect(await service.states.read(them, ids.theirs, {})).toBe(state);
    await ask(ids.mine);
  });

  it("neither prunes it nor deletes it among others", async () => {
    const before = await rowOf(ids.theirs);
    expect(await service.upkeep.prune(me, { thread_ids: both(), strategy: "keep_latest" })).toBe(1);
    expect(await service.upkeep.prune(me, { thread_ids: both(), strategy: "delete" })).toBe(1);
    expect(await service.upkeep.deleteMany(me, both())).toEqual([]);
    expect(await rowOf(ids.theirs)).toEqual(before);
  });

  it("neither finds nor counts it, by its record or by its values", async () => {
    for (const filter of [{}, { values: { count: 4 } }]) {
      const { text, total } = await service.search.page(me, threadSearchBody.parse(filter));
      expect(idsOf(JSON.parse(text) as { thread_id: string }[])).toEqual([ids.mine]);
      expect([total, await service.search.count(me, threadCountBody.parse(filter))]).toEqual([1, 1]);
    }
  });

  it("may not take its id, with if_exists raise or do_nothing", async () => {
    const again = { thread_id: ids.theirs, metadata: { owner: "me" } };
    for (const if_exists of ["raise", "do_nothing"]) {
      const create = service.records.create(me, threadCreateBody.parse({ ...again, if_exists }));
      await expect(create).rejects.toMatchObject({ kind: "conflict" });
    }
  });
});
