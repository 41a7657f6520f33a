import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { walkThroughAll } from "./walk.ts";

/** Tables with rows of one thread, found by the thread. All other tables are shared by all threads. */
const OF_A_THREAD = new Set([
  "threads",
  "runs",
  "run_events",
  "run_traces",
  "model_usage",
  "checkpoints",
  "checkpoint_writes",
  "checkpoint_contents",
  "unused_objects",
]);

/**
 * Statements with exceptions from the rule, by a piece of their text, and the reason. None of them belongs to a run on a thread, except the
 * claim, which looks for a thread.
 */
const MAY_DO_OTHERWISE: readonly (readonly [piece: RegExp, reason: string])[] = [
  [/^with recursive lanes\(/, "claims"],
  [/^with blocked as/, "a sweep before claims"],
  [/^with recursive threads_behind/, "a sweep before claims"],
  [
    /^update threadloom\.runs r set behind = false/,
    "lets the next run of threads start; its threads are a parameter",
  ],
  [
    /^with thread as \( select t\.thread_id from threadloom\.threads t where t\.thread_id = any \(array\(/,
    "the sweep for lost runs",
  ],
  [/^select r\.run_id.* from threadloom\.runs r where r\.status = 'running' and/, "the sweep for lost runs"],
  [/^with writable as/, "whether the sweep for lost runs has work"],
  [/^select exists \( select from unnest\(\$1::text\[\]\) as hosted/, "whether the poll has work"],
  [/^with recursive graphs/, "which graphs nobody hosts"],
  [/threadloom\.workers/, "who lives"],
  [/^select thread_id from threadloom\.runs where delete_thread/, "the sweep for threadless runs"],
  [/^select thread_id, created_at::text/, "cancels all"],
  [/^select run_id, thread_id from threadloom\.runs/, "cancels runs by their ids alone"],
  [/^select r\.run_id.*where r\.run_id = any\(\$1::uuid\[\]\)/, "runs of a batch"],
  [/^select r\.run_id.*where r\.thread_id = any\(\$/, "runs of a batch"],
  [
    /^with ended as \( update threadloom\.runs r set status = 'interrupted'/,
    "cancels many runs; the caller holds their threads",
  ],
  [/^with ended as \( select/, "cancels many runs"],
  [/^with never_began as/, "cancels many runs, of which some never began"],
  [/^with forgotten as \( delete from threadloom\.runs r where r\.run_id = any/, "cancels many runs"],
  [/^update threadloom\.runs set updated_at = now\(\), cancel_action/, "cancels many runs"],
  [
    /^update threadloom\.threads t set unfinished_runs = t\.unfinished_runs - ended\.runs/,
    "cancels many runs",
  ],
  [/thread_id = any ?\(\$1::uuid\[\]\)/, "several threads are deleted, pruned or locked"],
  [/^select \(select count\(\*\) from threadloom\.runs/, "figures"],
  [/^select count\(\*\) as total/, "counts"],
  [
    /^select 1 from threadloom\.checkpoint_contents where object_id/,
    "whether objects are in use, at the start",
  ],
  [/^select count\(\*\)::int as num_expired/, "figures"],
  [/^select page\.\*|^select candidate\.\*|^select (total, )?thread_id, metadata ->> 'graph_id'/, "searches"],
  [/threadloom\.assistants a on a\.assistant_id/, "searches"],
  [
    /threadloom"?\."?(assistants|assistant_versions|store_items|store_vectors|migrations)"? /,
    "records that are common to all threads",
  ],
  [/threadloom\.checkpoint_names/, "once for each graph's names and process, not for each run"],
  [/threadloom"?\."?crons/, "crons, which are common to all threads"],
  [/^with busy_receivers as/, "takes deliveries of the outbox, each of which belongs to a run"],
  [
    /^with forgotten as .* insert into threadloom\.deliveries/,
    "a run with a webhook: its end and its delivery are one statement",
  ],
  [/^with expired as \( select e\.ctid/, "the sweep for events that nobody may read any more"],
  [
    /unnest\(\$1::uuid\[\]\) with ordinality as list \(first, place\)/,
    "several runs share a statement (grouping.ts), also those of crons; their threads are a parameter",
  ],
  [/threadloom\.(encryption_keys|encrypting_servers) /, "which keys are used, by server"],
];

interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  Alias?: string;
  Plans?: PlanNode[];
  [key: string]: unknown;
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The ways in which a statement touches more than one thread, in PostgreSQL's plan for any parameters. */
const faultsOf = (text: string, plan: PlanNode): string[] => {
  const nodes = nodesOf(plan);
  const conditions = nodes
    .flatMap((node) => Object.entries(node))
    .flatMap(([name, value]) => (/Cond|Filter/.test(name) && typeof value === "string" ? [value] : []));
  const faults = new Set<string>();
  if (/\bxmin\b/.test(text)) faults.add("looks at xmin");
  for (const node of nodes) {
    const table = node["Relation Name"];
    if (table === undefined) continue;
    if (!OF_A_THREAD.has(table)) {
      if (node["Node Type"] === "ModifyTable") faults.add(`writes to ${table}`);
      continue;
    }
    if (node["Node Type"] === "ModifyTable") continue;
    const column = `${node.Alias}.thread_id`;
    const named = conditions.filter((condition) => condition.includes(column));
    if (named.some((condition) => condition.includes(`${column} = ANY`)))
      faults.add(`looks into ${table} for several threads`);
    else if (!named.some((one) => one.includes(`${column} = `) || one.includes(` = ${column}`)))
      faults.add(`looks into ${table} without its thread`);
  }
  return [...faults].sort();
};

let walk: Awaited<ReturnType<typeof walkThroughAll>>;
let client: pg.Client;
beforeAll(async () => {
  walk = await walkThroughAll();
  client = new pg.Client({ connectionString: walk.connectionString });
  await client.connect();
  await client.query("set plan_cache_mode = force_generic_plan");
});
afterAll(async () => {
  await client.end();
  await walk.close();
});

/** Uses prepared statements, because `explain (generic_plan)` exists only from PostgreSQL 16 on. */
const lookAt = async (text: string): Promise<string[]> => {
  await client.query(`prepare looked_at as ${text}`);
  try {
    const { rows: statements } = await client.query<{ parameters: number }>(
      "select cardinality(parameter_types) as parameters from pg_prepared_statements where name = 'looked_at'",
    );
    const nulls = Array.from({ length: statements[0]!.parameters }, () => "null").join(", ");
    const { rows } = await client.query<{ "QUERY PLAN": { Plan: PlanNode }[] }>(
      `explain (verbose, format json) execute looked_at${nulls === "" ? "" : `(${nulls})`}`,
    );
    return faultsOf(text, rows[0]!["QUERY PLAN"][0]!.Plan);
  } finally {
    await client.query("deallocate looked_at");
  }
};

describe("statements", () => {
  test("name the thread in each table with a thread, and write to no other, except for the listed ones", async () => {
    const found: string[] = [];
    const used = new Set<string>();
    let held = 0;
    for (const text of walk.statements) {
      const line = text.replace(/\s+/g, " ").trim();
      // `explain` reads only statistics.
      if (/^(?:create|explain) /.test(line)) continue;
      const faults = await lookAt(text);
      if (faults.length === 0) held += 1;
      const allowed = MAY_DO_OTHERWISE.filter(([piece]) => piece.test(line));
      if (faults.length === 0) continue;
      for (const [piece] of allowed) used.add(piece.source);
      if (allowed.length === 0) found.push(`${faults.join(", ")}: ${line}`);
    }
    expect(found).toEqual([]);
    // The walk has created, executed, read and ended runs.
    expect(held).toBeGreaterThan(45);
  });

  test.each([
    [
      "update threadloom.runs set lease_until = now() where run_id = $1",
      ["looks into runs without its thread"],
    ],
    [
      "update threadloom.runs r set attempt = 1 from threadloom.threads t where t.thread_id = $1 and r.run_id = $2",
      ["looks into runs without its thread"],
    ],
    [
      "select from threadloom.runs r join threadloom.threads t using (thread_id) where t.thread_id = $1 and run_id = $2",
      [],
    ],
    [
      "with worker as (insert into threadloom.workers (worker_id) values ($2)) select from threadloom.threads where thread_id = $1",
      ["writes to workers"],
    ],
    ["select from threadloom.threads where thread_id = $1 and xmin = $2", ["looks at xmin"]],
    [
      "delete from threadloom.threads where thread_id = any($1::uuid[])",
      ["looks into threads for several threads"],
    ],
  ])("that break a rule are found: %s", async (text, faults) => {
    expect(await lookAt(text)).toEqual(faults);
  });
});
