import { afterAll, beforeAll, expect, test } from "vitest";
import { pino } from "pino";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { createOnIdleThread } from "../../../src/engine/queue/sql/create.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { createGrouping } from "../../../src/platform/database/grouping.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { writeBatch } from "../../../src/state/checkpoints/write.ts";
import { ALL_RIGHTS } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { aNewRun, ASSISTANT } from "./open-queue.ts";

/* The rows that shared statements read, with PostgreSQL's default settings. They do not depend on the machine. */

const IN_GROUP = 8;
/** A nested loop compares each row of the group with each other. */
const ROWS_AT_MOST = 2 * IN_GROUP ** 2;

interface Node {
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Join Filter"?: number;
  Plans?: Node[];
}
const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
const readBy = (node: Node): number =>
  node["Actual Loops"] *
  (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0));

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
  // Only the test updates the statistics.
  for (const table of ["threads", "runs", "checkpoints"])
    await database.query(`alter table threadloom.${table} set (autovacuum_enabled = false)`);
  await database.query(
    "insert into threadloom.assistants (assistant_id, graph_id, name, version) values ($1, 'test', 'test', 1)",
    [ASSISTANT],
  );
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

/** Threads with one running and `ended` ended runs each. */
const fill = (threads: number, ended: number) =>
  database.query(
    `with thread as (
      insert into threadloom.threads (thread_id, unfinished_runs, status)
      select gen_random_uuid(), 1, 'busy' from generate_series(1, $1) returning thread_id)
    insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, attempt)
    select gen_random_uuid(), thread_id, gen_random_uuid(), 'test', case when n = 0 then 'running' else 'success' end,
      '{}', 'enqueue', 1
    from thread, generate_series(0, $2) as n`,
    [threads, ended],
  );
const analyze = () => database.query("analyze");

const STATISTICS: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
  ["without statistics", async () => undefined, async () => undefined],
  ["after analyze", async () => undefined, analyze],
  ["with statistics from a time when the tables were empty", analyze, async () => undefined],
  [
    "with statistics from a time when each thread had one ended run",
    async () => {
      await fill(2_000, 0);
      await database.query("update threadloom.runs set status = 'success'");
      await analyze();
    },
    async () => undefined,
  ],
];

test.each(STATISTICS)(
  "shared statements read only the rows of their runs, beside 2,000 running and 20,000 ended runs, %s",
  async (_, before, after) => {
    await database.query("truncate threadloom.threads cascade");
    await before();
    await fill(2_000, 0);
    await fill(IN_GROUP + 1, 2_500);
    await after();
    const runs = await database.query<{ threadId: string; runId: string }>(
      `select thread_id as "threadId", (array_agg(run_id) filter (where status = 'running'))[1] as "runId"
       from threadloom.runs group by thread_id having count(*) > 1`,
    );
    const idle = Array.from({ length: IN_GROUP + 1 }, newId);
    await database.query("insert into threadloom.threads (thread_id) select * from unnest($1::uuid[])", [
      idle,
    ]);

    const plans = new Map<string, Node>();
    const explaining = {
      ...database,
      async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
        const rollBack = new Error("rolled back");
        await database
          .transaction(async (transaction) => {
            const [row] = await transaction.query<{ "QUERY PLAN": { Plan: Node }[] }>(
              `explain (analyze, format json) ${text}`,
              values,
            );
            plans.set(text, row!["QUERY PLAN"][0]!.Plan);
            throw rollBack;
          })
          .catch((error: unknown) => {
            if (error !== rollBack) throw error;
          });
        return [];
      },
    };
    const grouped = createGrouping(explaining, pino({ level: "silent" }));
    const ends = createRunEnds(
      { ...database, grouped },
      { deleteRun: () => Promise.resolve(), deleteThread: () => Promise.resolve() },
    );
    const claim = { workerId: newId(), leaseSeconds: 10, graphIds: ["test"] };
    await Promise.all(
      idle.map((threadId) => createOnIdleThread({ grouped }, ALL_RIGHTS, aNewRun(threadId), claim)),
    );
    await Promise.all(
      runs.map(({ threadId, runId }) =>
        writeBatch(
          { ...database, grouped },
          {
            threadId,
            fence: { kind: "attempt", runId, attempt: 1 },
            asynchronous: true,
            last: undefined,
            contents: [],
            checkpoints: [],
            writes: [],
          },
        ),
      ),
    );
    await Promise.all(
      runs.map((run) =>
        ends.finish(
          { ...run, attempt: 1 },
          { status: "success", error: null, threadStatus: "idle", interrupts: "{}" },
        ),
      ),
    );

    const shared = [...plans].filter(([text]) => /skip locked/.test(text));
    expect(shared.map(([, plan]) => plan["Actual Rows"])).toEqual([IN_GROUP, IN_GROUP, IN_GROUP]);
    for (const [, plan] of shared)
      for (const node of nodesOf(plan)) expect(readBy(node)).toBeLessThanOrEqual(ROWS_AT_MOST);
  },
);
