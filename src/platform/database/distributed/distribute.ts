import type pg from "pg";
import { COPY_PREFIX, isBesideCoordinator, OF_THREADS } from "./placement.ts";

/**
 * Small tables that statements of threads read, with their keys. They stay where they are, and each node has a copy, which
 * a trigger keeps: Citus refuses many of the statements that write to them.
 */
const COPIED = { assistants: "assistant_id", checkpoint_shapes: "hash", workers: "worker_id" } as const;

/** Functions in statements of threads. */
const FUNCTIONS = [
  "merge_writes(text, text)",
  "merge_json(json, json)",
  "add_weight(bigint, bigint, bigint, jsonb, json, json, json)",
  "weight_within(bigint, bigint, jsonb, json, json, json)",
] as const;

/** A part of the distribution. A step that `isDone` is left out, so a failed distribution can go on. */
export interface Step {
  title: string;
  /** SQL; its only row has `done`. */
  isDone: string;
  statements: readonly string[];
}

const keyIs = (schema: string, table: string, columns: readonly string[]): string =>
  `select coalesce((select array_agg(a.attname::text order by k.place) = '{${columns.join(",")}}'
    from pg_constraint c cross join unnest(c.conkey) with ordinality as k(attnum, place)
    join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum
    where c.conrelid = '"${schema}".${table}'::regclass and c.contype = 'p'), false) as done`;

const keyStep = (schema: string, table: string, columns: readonly string[]): Step => ({
  title: `the key of ${table} begins with the thread`,
  isDone: keyIs(schema, table, columns),
  statements: [
    `alter table "${schema}".${table} drop constraint ${table}_pkey, add primary key (${columns.join(", ")})`,
  ],
});

const referenceStep = (schema: string, table: string, column: string): Step => ({
  title: `${table} refers to runs by thread`,
  isDone: `select exists (select from pg_constraint where conrelid = '"${schema}".${table}'::regclass and contype = 'f'
    and cardinality(conkey) = 2) as done`,
  statements: [
    `alter table "${schema}".${table}
       add foreign key (thread_id, ${column}) references "${schema}".runs (thread_id, run_id) on delete cascade`,
  ],
});

const isDistributed = (schema: string, table: string): string =>
  `select exists (select from pg_dist_partition where logicalrelid = '"${schema}".${table}'::regclass) as done`;

/** @param database the name of the database, for a setting that later moves of shards need, too */
export const stepsOf = (schema: string, database: string, shards: number): readonly Step[] => [
  {
    title: "triggers of distributed tables are allowed",
    isDone: `select current_setting('citus.enable_unsafe_triggers')::boolean and exists (
      select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
      where d.datname = current_database() and 'citus.enable_unsafe_triggers=on' = any(s.setconfig)) as done`,
    statements: [
      `alter database "${database.replaceAll('"', '""')}" set citus.enable_unsafe_triggers = on`,
      "set citus.enable_unsafe_triggers = on",
    ],
  },
  {
    title: "only keys that begin with the thread refer to runs",
    isDone: `select not exists (select from pg_constraint where conrelid in ('"${schema}".run_traces'::regclass,
      '"${schema}".push_notifications'::regclass) and contype = 'f' and cardinality(conkey) = 1) as done`,
    statements: [
      `alter table "${schema}".run_traces drop constraint run_traces_run_id_fkey`,
      `alter table "${schema}".push_notifications drop constraint push_notifications_task_run_id_fkey`,
    ],
  },
  keyStep(schema, "runs", ["thread_id", "run_id"]),
  {
    title: "runs are found by their ids",
    isDone: `select to_regclass('"${schema}".runs_by_id') is not null as done`,
    statements: [`create index runs_by_id on "${schema}".runs (run_id)`],
  },
  keyStep(schema, "run_traces", ["thread_id", "run_id", "attempt", "part"]),
  keyStep(schema, "webhook_deliveries", ["thread_id", "run_id"]),
  keyStep(schema, "push_notifications", ["thread_id", "push_id"]),
  referenceStep(schema, "run_traces", "run_id"),
  referenceStep(schema, "push_notifications", "task_run_id"),
  {
    title: "crons do not refer to threads",
    isDone: `select not exists (select from pg_constraint where conrelid = '"${schema}".crons'::regclass and contype = 'f') as done`,
    statements: [`alter table "${schema}".crons drop constraint crons_thread_id_fkey`],
  },
  {
    title: "triggers can keep copies of tables",
    isDone: `select to_regprocedure('"${schema}".keep_copy()') is not null as done`,
    statements: [
      `create function "${schema}".keep_copy() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    execute format('delete from %I.%I where %I = %L', tg_table_schema, '${COPY_PREFIX}' || tg_table_name, tg_argv[0],
      to_jsonb(old) ->> tg_argv[0]);
  end if;
  if tg_op <> 'DELETE' then
    execute format('insert into %1$I.%2$I select * from json_populate_record(null::%1$I.%2$I, %3$L)',
      tg_table_schema, '${COPY_PREFIX}' || tg_table_name, row_to_json(new));
  end if;
  return null;
end
$$`,
    ],
  },
  ...Object.entries(COPIED).map(([table, key]): Step => {
    const copy = `"${schema}".${COPY_PREFIX}${table}`;
    return {
      title: `every node has a copy of ${table}`,
      isDone: `select to_regclass('${copy}') is not null as done`,
      statements: [
        `lock table "${schema}".${table} in share row exclusive mode`,
        `create table ${copy} (like "${schema}".${table} including defaults, primary key (${key}))`,
        `select create_reference_table('${copy}')`,
        `insert into ${copy} select * from "${schema}".${table}`,
        `create trigger ${table}_copy after insert or update or delete on "${schema}".${table}
           for each row execute function "${schema}".keep_copy('${key}')`,
      ],
    };
  }),
  ...FUNCTIONS.map((signature): Step => ({
    title: `every node has the function ${signature.slice(0, signature.indexOf("("))}`,
    isDone: `select exists (select from pg_dist_object where classid = 'pg_proc'::regclass
      and objid = '"${schema}".${signature}'::regprocedure) as done`,
    statements: [`select create_distributed_function('"${schema}".${signature}')`],
  })),
  ...OF_THREADS.map((table): Step => ({
    title: `${table} is distributed by thread`,
    isDone: isDistributed(schema, table),
    statements: [
      table === "threads"
        ? `select create_distributed_table('"${schema}".threads', 'thread_id', colocate_with := 'none', shard_count := ${shards})`
        : `select create_distributed_table('"${schema}".${table}', 'thread_id', colocate_with := '"${schema}".threads')`,
    ],
  })),
];

const isDone = async (client: pg.ClientBase, step: Step): Promise<boolean> =>
  (await client.query<{ done: boolean }>(step.isDone)).rows[0]?.done === true;

/** `onStep` is called before a step begins. Each step is a transaction of its own. Throws errors of `pg`. */
export const distributeTables = async (
  client: pg.ClientBase,
  steps: readonly Step[],
  onStep: (step: Step) => void = () => undefined,
): Promise<void> => {
  for (const step of steps) {
    if (await isDone(client, step)) continue;
    onStep(step);
    await client.query("begin");
    try {
      for (const statement of step.statements) await client.query(statement);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    }
  }
};

/** 0: the threads are not distributed yet. */
export const countShards = async (client: pg.ClientBase, schema: string): Promise<number> => {
  const { rows } = await client.query<{ shards: number }>(
    `select count(*)::int as shards from pg_dist_shard where logicalrelid = to_regclass('"${schema}".threads')`,
  );
  return rows[0]!.shards;
};

/** The steps that are left. */
export const stepsLeft = async (client: pg.ClientBase, steps: readonly Step[]): Promise<Step[]> => {
  const left: Step[] = [];
  for (const step of steps) if (!(await isDone(client, step))) left.push(step);
  return left;
};

/** A process has a prepared statement per statement, shard and connection. */
export const SHARDS_AT_MOST = 1_024;
const OLDEST_CITUS = 12;

/** Whether the tables were created. */
export const hasTables = async (client: pg.ClientBase, schema: string): Promise<boolean> =>
  (
    await client.query<{ found: boolean }>(
      `select to_regclass('"${schema}".push_notifications') is not null as found`,
    )
  ).rows[0]?.found === true;

/** Why the database can't be distributed, in sentences for its operator; empty if it can. */
export const clusterFaults = async (client: pg.ClientBase): Promise<string[]> => {
  const { rows: extensions } = await client.query<{ extversion: string }>(
    "select extversion from pg_extension where extname = 'citus'",
  );
  const version = extensions[0]?.extversion;
  if (version === undefined)
    return [
      "This database has no extension citus. Create it on each node, and add the nodes with citus_add_node.",
    ];
  const faults: string[] = [];
  if (Number.parseInt(version, 10) < OLDEST_CITUS)
    faults.push(`Citus ${version} is too old: ${OLDEST_CITUS} or newer is needed.`);
  const { rows: nodes } = await client.query<{ groupid: number; shouldhaveshards: boolean }>(
    "select groupid, shouldhaveshards from pg_dist_node where noderole = 'primary' and isactive",
  );
  if (!nodes.some((node) => node.groupid === 0))
    faults.push(
      "The coordinator does not know its own address. Call citus_set_coordinator_host('its name', its port) there.",
    );
  if (!nodes.some((node) => node.shouldhaveshards))
    faults.push("No node takes shards. Add a node with citus_add_node.");
  if (await isBesideCoordinator(client)) faults.push("This is not the coordinator. Use its address.");
  return faults;
};
