import { afterAll, beforeAll, expect, test } from "vitest";
import { createUsageService } from "../../../src/api/usage/service.ts";
import { usageQuery } from "../../../src/api/usage/schemas.ts";
import type { Authorize } from "../../../src/access/authorize.ts";
import type { Caller } from "../../../src/access/caller.ts";
import { countedAs } from "../../../src/engine/queue/counted-as.ts";
import { createBudgets } from "../../../src/engine/traces/budgets.ts";
import { createTraceStorage } from "../../../src/engine/traces/storage.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { ownedBy } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The blocks that statements of traces and usage read, beside many rows of other threads, callers and days. */

const ROWS = 40_000;
const CALLERS = 400;
const PER_CALLER = ROWS / CALLERS;
const DAYS = 40;
const SECONDS_PER_DAY = 86_400;
/** All rows of `model_usage` take about 900 blocks. */
const FEW_BLOCKS = 40;
/** A row takes a look at the index and at the table. */
const BLOCKS_PER_ROW = 4;
const USER: Caller = { kind: "user", identity: "ann", permissions: [], user: {} };
/** Shows users only their own threads. */
const usersOwn: Authorize = async (_by, resource, _action, value) => ownedBy(resource, "ann", value);

let fresh: FreshDatabase;
const own = { threadId: newId(), runId: newId(), assistantId: newId() };
/** In its second attempt, on a thread with many checkpoints. The newest one is its own. */
const begun = { threadId: newId(), runId: newId() };
beforeAll(async () => {
  fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString);
  const insert = async (rows: number, thread: string | null, caller: string | null): Promise<void> => {
    await database.query(
      `insert into threadloom.model_usage (run_id, attempt, part, model, thread_id, assistant_id, graph_id, caller, calls,
         input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens, created_at)
       select coalesce($6, gen_random_uuid()), 1, number, 'model', coalesce($2, gen_random_uuid()),
         coalesce($3, gen_random_uuid()), 'test', coalesce($4, 'user:' || number % ${CALLERS}), 1, 1, 1, 0, 0, 0,
         now() - make_interval(secs => number::float8 * $5 / $1)
       from generate_series(1, $1::int) number`,
      [rows, thread, thread && own.assistantId, caller, DAYS * SECONDS_PER_DAY, thread && own.runId],
    );
    await database.query(
      `with aged as (select now() - make_interval(secs => random() * $3) as at
         from generate_series(1, case when $2::uuid is null then $1::int else 1 end)),
       named as (select at, coalesce($2, gen_random_uuid()) as thread_id,
         coalesce($4, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 19))::uuid) as run_id
         from aged),
       thread as (insert into threadloom.threads (thread_id) select thread_id from named),
       run as (insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
         select run_id, thread_id, thread_id, 'test', 'success', '{}', 'enqueue' from named)
       insert into threadloom.run_traces (thread_id, run_id, attempt, part, started_at, spans, created_at)
       select thread_id, run_id, 1, 0, now(), '{"id":1}', at from named`,
      [rows, thread, DAYS * SECONDS_PER_DAY, thread && own.runId],
    );
  };
  await insert(ROWS, null, null);
  await insert(PER_CALLER, own.threadId, countedAs(database.encryption, USER));
  await database.query(
    `with thread as (insert into threadloom.threads (thread_id) values ($1) returning thread_id),
     run as (insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
       select $2, thread_id, $3, 'test', 'running', '{}', 'enqueue', 2 from thread)
     insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, run_id, metadata, names, record, seq)
     select thread_id, '', ('1f000000-0000-6000-8000-' || lpad(to_hex(number), 12, '0'))::uuid,
       case when number = $4 then $2 else gen_random_uuid() end, '{}', gen_random_uuid(), repeat('x', 1000), number
     from thread, generate_series(1, $4::int) number`,
    [begun.threadId, begun.runId, own.assistantId, ROWS / 4],
  );
  await database.query("vacuum analyze");
  await database.close();
});
afterAll(() => fresh.drop());

const STATEMENTS: [string, number, (explaining: Database, database: Database) => Promise<unknown>][] = [
  ["the trace of a run", FEW_BLOCKS, (explaining) => createTraceStorage(explaining).read(own)],
  [
    "the usage of a run",
    FEW_BLOCKS + PER_CALLER * BLOCKS_PER_ROW,
    (explaining) => createTraceStorage(explaining).usageOf(own),
  ],
  [
    "the budget of a caller",
    FEW_BLOCKS + PER_CALLER * BLOCKS_PER_ROW,
    (explaining) =>
      createBudgets(explaining, [{ per: "caller", every: "month", tokens: 1e9, cost: undefined }]).refusalOf({
        caller: "user:7",
        assistantId: own.assistantId,
      }),
  ],
  [
    "the budget of an assistant",
    FEW_BLOCKS + PER_CALLER * BLOCKS_PER_ROW,
    (explaining) =>
      createBudgets(explaining, [{ per: "assistant", every: "day", tokens: 1e9, cost: undefined }]).refusalOf(
        {
          caller: null,
          assistantId: own.assistantId,
        },
      ),
  ],
  [
    "whether a run has begun",
    FEW_BLOCKS,
    (explaining) => createBudgets(explaining, []).refusalOfRun(begun, own.assistantId),
  ],
  [
    "the usage that a user may see",
    FEW_BLOCKS + PER_CALLER * BLOCKS_PER_ROW,
    (explaining) =>
      createUsageService(usersOwn, explaining, undefined).sums(USER, usageQuery.parse({ group_by: "model" })),
  ],
  [
    "the days with usage",
    FEW_BLOCKS,
    (explaining) => createUsageService(usersOwn, explaining, undefined).sums(USER, usageQuery.parse({})),
  ],
  [
    "old traces, if there are none",
    FEW_BLOCKS,
    (explaining) => createTraceStorage(explaining).deleteTraces(DAYS * 2 * SECONDS_PER_DAY, 1_000),
  ],
  [
    "old usage, if there is none",
    FEW_BLOCKS,
    (explaining) => createTraceStorage(explaining).deleteUsage(DAYS * 2 * SECONDS_PER_DAY, 1_000),
  ],
];

test.each(STATEMENTS)("%s is found in few blocks", async (_what, most, ask) => {
  const database = openTestDatabase(fresh.connectionString);
  const { explaining, blocks } = explainingDatabase(database);
  await ask(explaining, database);
  const read = blocks();
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(most);
  await database.close();
});

test("a batch of old rows is removed by keys, not by reading the table", async () => {
  const database = openTestDatabase(fresh.connectionString);
  const { explaining, blocks } = explainingDatabase(database);
  const batch = 100;
  const seconds = (DAYS - 2) * SECONDS_PER_DAY;
  await createTraceStorage(explaining).deleteTraces(seconds, batch);
  expect(blocks()).toBeLessThan(FEW_BLOCKS + batch * 14);
  await createTraceStorage(explaining).deleteUsage(seconds, batch);
  expect(blocks()).toBeLessThan(FEW_BLOCKS + batch * 14);
  await database.close();
});

test("a budget that was checked before sums only newer rows, and counts all", async () => {
  const database = openTestDatabase(fresh.connectionString);
  const asked: unknown[][] = [];
  const query: Database["query"] = async (text, values = []) => {
    asked.push(values);
    return await database.query(text, values);
  };
  const [sum] = await database.query<{ tokens: number }>(
    `select coalesce(sum(input_tokens + output_tokens), 0)::float8 as tokens from threadloom.model_usage
     where assistant_id = $1 and created_at >= date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'`,
    [own.assistantId],
  );
  const { tokens } = sum!;
  const budget = { per: "assistant", every: "month", tokens: tokens + 1, cost: undefined } as const;
  const budgets = createBudgets({ ...database, query }, [budget]);
  const counted = { caller: null, assistantId: own.assistantId };
  expect(await budgets.refusalOf(counted)).toBeUndefined();
  expect(await budgets.refusalOf(counted)).toBeUndefined();
  expect(asked).toEqual([
    [own.assistantId, "month", null],
    [own.assistantId, "month", expect.any(String)],
  ]);
  await database.query(
    `insert into threadloom.model_usage (run_id, attempt, part, model, thread_id, assistant_id, graph_id, calls,
       input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens)
     values (gen_random_uuid(), 1, 0, 'model', gen_random_uuid(), $1, 'test', 1, 1, 0, 0, 0, 0)`,
    [own.assistantId],
  );
  expect(await budgets.refusalOf(counted)).toContain("has used its budget");
  await database.close();
});
