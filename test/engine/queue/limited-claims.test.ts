import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createQueue, type Queue } from "../../../src/engine/queue/queue.ts";
import { LOCK_FOR_COUNTING } from "../../../src/engine/queue/sql/running-limits.ts";
import { openQueue, type OpenQueue } from "./open-queue.ts";

/** Claims with a limit of running runs, one after the other. */

/** Above this cost PostgreSQL compiles a plan, which takes longer than a thousand claims. */
const JIT_ABOVE_COST = 100_000;
const LIMITS = { perCaller: 1, keyFactor: 1, byGraph: new Map<string, number>() };

let opened: OpenQueue;
let database: Database;
beforeAll(async () => {
  opened = await openQueue();
  ({ database } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

const queueOn = (over: Database): Queue =>
  createQueue(over, { maxAttempts: 3, graphIds: ["test"], runningLimits: LIMITS });

/** A server that hangs after the first statement of a transaction, until it is resumed. */
const aStoppedServer = () => {
  let resume = (): void => undefined;
  const resumed = new Promise<void>((resolve) => (resume = resolve));
  let stopped = (): void => undefined;
  const isStopped = new Promise<void>((resolve) => (stopped = resolve));
  const transaction: Database["transaction"] = (work, opening) =>
    database.transaction(async (over) => {
      const statements: string[] = [];
      return await work({
        ...over,
        async query<Row>(text: string, values?: unknown[]): Promise<Row[]> {
          if (statements.push(text) > 1) {
            stopped();
            await resumed;
          }
          return await over.query<Row>(text, values);
        },
      });
    }, opening);
  return { queue: queueOn({ ...database, transaction }), isStopped, resume };
};

test("a server that vanishes while it counts blocks other claims for seconds, not for hours", async () => {
  const { runId } = await opened.aRun({ status: "pending", attempt: 0 });
  const server = aStoppedServer();
  const claim = server.queue.claim(newId(), 10, 1);
  const refused = expect(claim).rejects.toThrow();
  await server.isStopped;
  try {
    expect(await queueOn(database).claim(newId(), 10, 1)).toMatchObject([{ run_id: runId }]);
  } finally {
    server.resume();
  }
  await refused;
});

test("workers write signs of life while a claim counts", async () => {
  await database.transaction(async (counting) => {
    await counting.query(LOCK_FOR_COUNTING);
    // The lock_timeout of this database would refuse the statement.
    await database.query("insert into threadloom.workers (worker_id, graph_ids) values ($1, '{}')", [
      newId(),
    ]);
  });
});

const fill = async (runs: number, caller: string, { status = "pending", laterSeconds = 0 } = {}) => {
  await database.query(
    `with thread as (
      insert into threadloom.threads (thread_id, unfinished_runs, turns)
      select gen_random_uuid(), 1, 1 from generate_series(1, $1) returning thread_id)
    insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, caller,
      created_at, available_at)
    select gen_random_uuid(), thread_id, gen_random_uuid(), 'test', $2, '{}', 'enqueue', $3,
      now() - interval '1 hour', now() - make_interval(secs => 10 - $4) from thread`,
    [runs, status, caller, laterSeconds],
  );
};
const callersClaimed = async (): Promise<string[]> => {
  const claimed = await queueOn(database).claim(newId(), 10, 1);
  const rows = await database.query<{ caller: string }>(
    "select caller from threadloom.runs where run_id = any($1::uuid[])",
    [claimed.map((run) => run.run_id)],
  );
  return rows.map(({ caller }) => caller);
};

interface Node {
  "Node Type": string;
  "Relation Name"?: string;
  "Total Cost": number;
  "Actual Rows": number;
  Plans?: Node[];
}
const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
/** The plan of a claim for any parameters; it claims none. */
const claimPlan = async (): Promise<Node> => {
  let plan: Node | undefined;
  const transaction: Database["transaction"] = (work, opening) =>
    database.transaction(
      (over) =>
        work({
          ...over,
          async query<Row>(text: string, values?: unknown[]): Promise<Row[]> {
            if (values === undefined) return await over.query<Row>(text);
            await over.query("set local plan_cache_mode = force_generic_plan");
            const [row] = await over.query<{ "QUERY PLAN": { Plan: Node }[] }>(
              `explain (analyze, buffers, format json) ${text}`,
              values,
            );
            plan = row?.["QUERY PLAN"][0]?.Plan;
            throw new Error("rolled back");
          },
        }),
      opening,
    );
  const claim = queueOn({ ...database, transaction }).claim(newId(), 10, 1);
  await expect(claim).rejects.toThrow("rolled back");
  return plan ?? expect.fail("no plan");
};

test.each(["without statistics", "after analyze"])(
  "scheduled runs of a caller at its limit do not delay those of others, %s",
  async (statistics) => {
    await fill(1, "user:full", { status: "running" });
    await fill(1_500, "user:full");
    await fill(1, "user:one", { laterSeconds: 5 });
    if (statistics === "after analyze") await database.query("analyze");
    const plan = await claimPlan();
    expect(plan["Total Cost"]).toBeLessThan(JIT_ABOVE_COST);
    for (const node of nodesOf(plan)) {
      expect(`${node["Node Type"]} ${node["Relation Name"]}`).not.toBe("Seq Scan runs");
      // Only lanes are sorted.
      if (node["Node Type"] === "Sort") expect(node["Actual Rows"]).toBe(1);
    }
    expect(await callersClaimed()).toEqual(["user:one"]);
    expect(await callersClaimed()).toEqual([]);
  },
);
