import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createQueue } from "../../../src/engine/queue/queue.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/* The cost of a claim in blocks read and in PostgreSQL's plan, with PostgreSQL's default settings. Neither depends on the machine. */

/** Above this cost PostgreSQL compiles a plan, which takes longer than a thousand claims. */
const JIT_ABOVE_COST = 100_000;
/** Of 400 candidates and 20 lanes, and for each claimed run. */
const BLOCKS_AT_MOST = 1_000;
/** 20 of each of 20 lanes. */
const CANDIDATES_AT_MOST = 400;
const GRAPHS = ["one", "two", "three", "four", "five", "six", "seven"];

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
  // Only the test updates the statistics.
  const tables = await database.query<{ tablename: string }>(
    "select tablename from pg_tables where schemaname = 'threadloom'",
  );
  for (const { tablename } of tables)
    await database.query(`alter table threadloom.${tablename} set (autovacuum_enabled = false)`);
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

interface Node {
  "Node Type": string;
  "Relation Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Total Cost": number;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  Plans?: Node[];
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The executed plan of a claim of this many runs, for any parameters; it claims none. */
const claimPlan = async (limit: number): Promise<Node> => {
  let plan: Node | undefined;
  const explaining: Pick<Database, "query"> = {
    async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
      const rollBack = new Error("rolled back");
      await database
        .transaction(async (transaction) => {
          await transaction.query("set local plan_cache_mode = force_generic_plan");
          const [row] = await transaction.query<{ "QUERY PLAN": { Plan: Node }[] }>(
            `explain (analyze, buffers, format json) ${text}`,
            values,
          );
          plan = row?.["QUERY PLAN"][0]?.Plan;
          throw rollBack;
        })
        .catch((error: unknown) => {
          if (error !== rollBack) throw error;
        });
      return [];
    },
  };
  const queue = createQueue({ ...database, ...explaining }, { maxAttempts: 3, graphIds: GRAPHS });
  // The first reader of an index entry may have to check whether its row is dead.
  for (let count = 0; count < 2; count += 1) await queue.claim(newId(), 10, limit);
  if (plan === undefined) throw new Error("No plan.");
  return plan;
};
const blocksOf = (plan: Node): number => plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];

const fill = async (waiting: number, { graphs, callers }: { graphs: number; callers: number }) => {
  await database.query(
    `with thread as (
      insert into threadloom.threads (thread_id, unfinished_runs, turns)
      select gen_random_uuid(), 1, 1 from generate_series(1, $1) returning thread_id),
    numbered as (select thread_id, row_number() over () as number from thread)
    insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, caller)
    select gen_random_uuid(), thread_id, gen_random_uuid(), ($2::text[])[1 + number % $3], 'pending', '{}', 'enqueue',
      case when $4 > 0 then 'user:' || number % $4 end
    from numbered`,
    [waiting, GRAPHS, graphs, callers],
    { answerMs: 120_000 },
  );
};
const MANY_LANES = { graphs: GRAPHS.length, callers: 60 };
const STATISTICS: [string, (filling: () => Promise<void>) => Promise<void>][] = [
  ["without statistics", (filling) => filling()],
  [
    "after analyze",
    async (filling) => {
      await filling();
      await database.query("analyze");
    },
  ],
  [
    "with statistics from a time when no run waited",
    async (filling) => {
      await fill(500, { graphs: 1, callers: 0 });
      await database.query("update threadloom.runs set status = 'success'");
      await database.query("analyze");
      await filling();
    },
  ],
];

describe.each([{ graphs: 1, callers: 0 }, { graphs: 1, callers: 60 }, MANY_LANES])(
  "with runs of $graphs graphs and $callers callers",
  (kinds) => {
    test.each(STATISTICS)(
      "a claim reads few rows beside 10, 5,000 and 50,000 others, %s",
      async (_, analyzed) => {
        const sizes = kinds === MANY_LANES ? [10, 5_000, 50_000] : [10, 5_000];
        const blocks = new Map<number, number[]>();
        for (const waiting of sizes) {
          await database.query("truncate threadloom.threads cascade");
          await analyzed(() => fill(waiting, kinds));
          for (const limit of [1, 10]) {
            const plan = await claimPlan(limit);
            blocks.set(limit, [...(blocks.get(limit) ?? []), blocksOf(plan)]);
            expect(plan["Actual Rows"]).toBe(limit);
            expect(plan["Total Cost"]).toBeLessThan(JIT_ABOVE_COST);
            if (waiting === 10) continue;
            for (const node of nodesOf(plan)) {
              expect(`${node["Node Type"]} ${node["Relation Name"]}`).not.toBe("Seq Scan runs");
              // Graphs and candidates are sorted, not all runs.
              if (node["Node Type"] === "Sort")
                expect(node["Actual Rows"]).toBeLessThanOrEqual(CANDIDATES_AT_MOST);
              expect(node["Actual Rows"] * node["Actual Loops"]).toBeLessThanOrEqual(CANDIDATES_AT_MOST);
            }
          }
        }
        for (const ofLimit of blocks.values())
          for (const read of ofLimit) expect(read).toBeLessThan(BLOCKS_AT_MOST);
      },
    );
  },
);
