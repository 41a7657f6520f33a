import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createAgUiRepository } from "../../../src/protocols/agui/repository.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks that a request reads of a thread with many runs, if none of them is the one it looks for. */

const RUNS_OF_THREAD = 20_000;
/** The newest 1,000 runs are on about 40 blocks, all runs on about 800. */
const BLOCKS_OF_A_SEARCH = 100;
const THREAD = "00000000-0000-7000-8000-00000000000a";

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString);
  await database.query("insert into threadloom.threads (thread_id) values ($1)", [THREAD]);
  await database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, metadata)
      select gen_random_uuid(), $1, gen_random_uuid(), 'test', 'success', '{}', 'enqueue', json_build_object('agui_run_id', number)
      from generate_series(1, $2) number`,
    [THREAD, RUNS_OF_THREAD],
  );
  await database.query("vacuum analyze");
  await database.close();
});
afterAll(() => fresh.drop());

const open = async (): Promise<Database> => openTestDatabase(fresh.connectionString);

const blocksFor = async (answers: readonly string[] | undefined): Promise<number> => {
  const database = await open();
  const { explaining, blocks } = explainingDatabase(database);
  const asked = { clientRunId: "unknown", answers };
  await createAgUiRepository(explaining).threadRuns(EVERY_THREAD, THREAD, asked);
  await database.close();
  return blocks();
};

test("a request reads few blocks of a thread with 20,000 runs, and more only if it answers interrupts", async () => {
  const turn = await blocksFor(undefined);
  expect(turn).toBeGreaterThan(0);
  expect(turn).toBeLessThan(BLOCKS_OF_A_SEARCH);
  const answer = await blocksFor(["an interrupt"]);
  expect(answer).toBeGreaterThan(turn);
  expect(answer).toBeLessThan(2 * BLOCKS_OF_A_SEARCH);
});

test("a repeated request finds its run among the newest 1,000", async () => {
  const database = await open();
  const sameAs = async (clientRunId: number) => {
    const asked = { clientRunId: String(clientRunId), answers: undefined };
    const found = await createAgUiRepository(database).threadRuns(EVERY_THREAD, THREAD, asked);
    return found?.same;
  };
  expect(await sameAs(RUNS_OF_THREAD - 999)).toMatchObject({ status: "success" });
  expect(await sameAs(RUNS_OF_THREAD - 1_000)).toBeNull();
  await database.close();
});
