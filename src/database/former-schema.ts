import type pg from "pg";

/**
 * Before they had a schema of their own the tables were made in `public`, beside whatever others have there. What each
 * migration made there, so that only what is ours is moved: beside the tables of LangGraph's Postgres saver, which has
 * a table `checkpoints`, too, the second migration failed, and `checkpoints` is not ours.
 */
const MADE_IN_PUBLIC: readonly {
  migration: string;
  tables: readonly string[];
  functions: readonly string[];
}[] = [
  {
    migration: "0001_assistants_threads_runs.sql",
    tables: ["assistants", "assistant_versions", "threads", "runs", "run_events"],
    functions: [],
  },
  {
    migration: "0002_checkpoints.sql",
    tables: [
      "checkpoint_shapes",
      "checkpoints",
      "checkpoint_writes",
      "checkpoint_elements",
      "checkpoint_contents",
    ],
    functions: ["merge_writes(text, text)"],
  },
  { migration: "0003_store.sql", tables: ["store_items"], functions: ["store_number(jsonb)"] },
];
const FIRST = "0001_assistants_threads_runs.sql";
/** Made by the server, not by a migration, where semantic search is configured. */
const VECTORS = "store_vectors";

const exists = async (client: pg.Client, relation: string): Promise<boolean> => {
  const { rows } = await client.query<{ found: boolean }>("select to_regclass($1) is not null as found", [
    relation,
  ]);
  return rows[0]?.found === true;
};

/** Names of the migrations that ran in `public`; none if its table `migrations` is missing or is another tool's. */
const ranInPublic = async (client: pg.Client): Promise<ReadonlySet<string>> => {
  const { rows: columns } = await client.query<{ name: string }>(
    `select column_name as name from information_schema.columns
     where table_schema = 'public' and table_name = 'migrations' order by column_name`,
  );
  if (columns.map(({ name }) => name).join() !== "checksum,name,ran_at") return new Set();
  const { rows } = await client.query<{ name: string }>("select name from public.migrations");
  return new Set(rows.map(({ name }) => name));
};

/**
 * Moves the tables that a former version made in `public`, with all their rows, into `schema`; within the caller's
 * transaction, without copying. Answers how many tables it moved: 0 if there are none, or if `schema` has its own.
 */
export const moveFromPublic = async (client: pg.Client, schema: string): Promise<number> => {
  if (schema === "public" || (await exists(client, `"${schema}".migrations`))) return 0;
  const ran = await ranInPublic(client);
  if (!ran.has(FIRST)) return 0;
  const made = MADE_IN_PUBLIC.filter(({ migration }) => ran.has(migration));
  const tables = [...made.flatMap((each) => each.tables), "migrations"];
  if (ran.has("0003_store.sql") && (await exists(client, `public.${VECTORS}`))) tables.push(VECTORS);
  for (const table of tables) await client.query(`alter table public.${table} set schema "${schema}"`);
  for (const signature of made.flatMap((each) => each.functions))
    await client.query(`alter function public.${signature} set schema "${schema}"`);
  return tables.length;
};
