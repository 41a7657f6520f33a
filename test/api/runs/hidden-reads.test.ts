import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Visibility } from "../../../src/access/visibility.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import {
  createRunRepository,
  type RunRepository,
  type RunSelector,
} from "../../../src/api/runs/repository.ts";
import { runSearchBody } from "../../../src/api/runs/schemas.ts";
import { createRunSearcher, type RunSearcher } from "../../../src/api/runs/search.ts";
import { EVERY_THREAD, ownedBy } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";

import { openTestDatabase } from "../../helpers/test-database.ts";

const me = ownedBy("threads", "me", undefined);
const all = { limit: 10, offset: 0 };

let fresh: FreshDatabase;
let database: Database;
let repository: RunRepository;
let searcher: RunSearcher;
let mine: RunSelector;
let theirs: RunSelector;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { poolSize: 2 });
  repository = createRunRepository(database);
  searcher = createRunSearcher(database);
  const aRun = async (owner: string): Promise<RunSelector> => {
    const selector = { threadId: newId(), runId: newId() };
    await database.query(
      `insert into threadloom.threads (thread_id, metadata, interrupts) values ($1, $2, '{"task":[]}')`,
      [selector.threadId, { owner }],
    );
    // A run's own metadata do not decide who may see the run.
    await database.query(
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, metadata, multitask_strategy)
       values ($1, $2, gen_random_uuid(), 'agent', 'success', '{}', '{"owner":"me"}', 'enqueue')`,
      [selector.runId, selector.threadId],
    );
    return selector;
  };
  mine = await aRun("me");
  theirs = await aRun("them");
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

describe("a caller who may not see a thread cannot read its runs", () => {
  type Ask = (visibility: Visibility<"threads">, run: RunSelector) => Promise<unknown>;
  const totalOf = async (by: Visibility<"threads">, search: object) => {
    const { rows, total } = await searcher.page(by, runSearchBody.parse(search));
    return { rows: rows.length, total };
  };
  test.each<[method: string, ask: Ask, seen: unknown, hidden: unknown]>([
    ["find", async (by, run) => (await repository.find(by, run))?.status, "success", undefined],
    ["findAwaited", async (by, run) => (await repository.findAwaited(by, run))?.status, "success", undefined],
    ["threadExists", (by, run) => repository.threadExists(by, run.threadId), true, false],
    ["threadIsHidden", (by, run) => repository.threadIsHidden(by, run.threadId), false, true],
    [
      "threadsSeen",
      async (by, run) => (await repository.threadsSeen(by, [run.threadId], database)).length,
      1,
      0,
    ],
    ["interrupts", (by, run) => repository.interrupts(by, run.threadId), { task: [] }, {}],
    ["threadOf", async (by, run) => typeof (await repository.threadOf(by, run.runId)), "string", "undefined"],
    ["list", async (by, run) => (await searcher.list(by, run.threadId, all)).rows.length, 1, 0],
    [
      "page",
      (by, run) => totalOf(by, { thread_id: run.threadId }),
      { rows: 1, total: 1 },
      { rows: 0, total: 0 },
    ],
    [
      "page beyond the last, which is counted",
      async (by, run) => (await totalOf(by, { thread_id: run.threadId, offset: 5 })).total,
      1,
      0,
    ],
  ])("by %s", async (_method, ask, seen, hidden) => {
    expect(await ask(me, mine)).toEqual(seen);
    expect(await ask(me, theirs)).toEqual(hidden);
    expect(await ask(EVERY_THREAD, theirs)).toEqual(seen);
  });

  test("by a page of all runs, or its total", async () => {
    expect(await totalOf(me, {})).toEqual({ rows: 1, total: 1 });
    expect(await totalOf(me, { metadata: { owner: "me" } })).toEqual({ rows: 1, total: 1 });
    expect(await totalOf(EVERY_THREAD, {})).toEqual({ rows: 2, total: 2 });
  });
});
