import type pg from "pg";

export interface Size {
  threads: number;
  /** Each thread has one of them as its owner, but a fifth of all threads belongs to one more: `OWNER_OF_MANY`. */
  owners: number;
  assistants: number;
  crons: number;
  storeItems: number;
  longTurns: number;
}

export const OWNER_OF_MANY = "owner-of-many";
export const ownerOf = (index: number, { owners }: Size): string => `owner-${index % owners}`;
/** `metadata.customer` of about four threads. */
export const customerOf = (index: number, { threads }: Size): string => `customer-${index % (threads / 4)}`;
/** `metadata.topic` of one thread of a hundred. */
export const TOPIC = "topic-7";
/** `metadata.channel` of a quarter of all threads. */
export const CHANNEL = "mail";
/** Labels of the namespace of all store items. */
export const NAMESPACE = ["users"];

export interface Filled {
  /** Threads with runs, from all times. */
  threadIds: string[];
  longThreadId: string;
  checkpoints: number;
}

/** The shares of threads without runs, and with this many turns: five checkpoints each on average. */
const TURNS: readonly { turns: number; share: number }[] = [
  { turns: 0, share: 0.2 },
  { turns: 1, share: 0.66 },
  { turns: 2, share: 0.1 },
  { turns: 10, share: 0.04 },
];

/** An id of version 7 in the form of `newId`: ordered by a time in SQL, the rest from `seed`. */
const idAt = (time: string, seed: string): string =>
  `overlay(overlay(md5(${seed}) placing lpad(to_hex((extract(epoch from ${time}) * 1000)::bigint), 12, '0') from 1)
     placing '7' from 13)::uuid`;

/**
 * Copied threads: a year of them with growing density, the newest from now. Most were last used within an hour of their creation. $1: the
 * number; $2: ids of the templates, by their index in `TURNS`; $3: the upper limit of each in percent; $4: owners.
 */
const COPIES = `create temporary table copies as
  select n, ${idAt("created_at", "'thread' || n")} as thread_id, created_at,
    case when template = 1 then created_at
      else least(now(), created_at - ln(1 - random()) * interval '40 minutes') end as updated_at,
    ($2::uuid[])[template] as template_id,
    case when template = 1 or n % 1000 >= 45 then 'idle' when n % 1000 < 30 then 'interrupted' else 'error' end as status,
    jsonb_build_object(
      'owner', case when n % 5 = 3 then $5 else 'owner-' || n % $4 end,
      'customer', 'customer-' || n % ($1 / 4), 'topic', 'topic-' || n % 100,
      'channel', case when n % 4 = 1 then 'mail' else 'web' end) as metadata
  from generate_series(1, $1::int) n,
    lateral (select now() - interval '1 year' * pow(1 - n::float8 / $1, 2) as created_at) times,
    lateral (select width_bucket((hashint4(n) & 65535) / 65536.0 * 100, $3::numeric[]) + 1 as template) templates`;

const THREADS = `insert into threadloom.threads (thread_id, status, resting_status, metadata, config, interrupts, error,
    turns, version, created_at, updated_at, state_updated_at)
  select c.thread_id, c.status, c.status, t.metadata || c.metadata, t.config,
    case when c.status = 'interrupted'
      then '{"8f7b1c5e-0000-5000-8000-000000000000": [{"id": "4f1d2b", "value": "Go on?"}]}' else t.interrupts end,
    case when c.status = 'error' then '{"error": "Error", "message": "The model did not answer."}'::jsonb end,
    t.turns, t.version, c.created_at, c.updated_at, c.updated_at
  from copies c join threadloom.threads t on t.thread_id = c.template_id order by c.n`;

/** Columns of a table, except those that a copy sets itself. */
const columnsOf = async (client: pg.Client, table: string, but: readonly string[]): Promise<string> => {
  const { rows } = await client.query<{ names: string }>(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as names from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname <> all($2)`,
    [`threadloom.${table}`, but],
  );
  return rows[0]!.names;
};

const copiesOf = async (
  client: pg.Client,
  table: string,
  own: Readonly<Record<string, string>>,
): Promise<number> => {
  const rest = await columnsOf(client, table, Object.keys(own));
  const { rowCount } = await client.query(
    `insert into threadloom.${table} (${Object.keys(own).join(", ")}, ${rest})
     select ${Object.entries(own)
       .map(([name, value]) => `${value} as ${name}`)
       .join(", ")}, ${rest
       .split(", ")
       .map((name) => `t.${name}`)
       .join(", ")}
     from copies c join threadloom.${table} t on t.thread_id = c.template_id order by c.n`,
  );
  return rowCount ?? 0;
};

const RUN_ID = idAt("c.created_at", "c.n::text || t.run_id");

/** Copies of the templates' dependent rows, under the ids of the copies. */
const fillThreads = async (client: pg.Client, size: Size, templates: readonly string[]): Promise<void> => {
  let upTo = 0;
  const bounds = TURNS.slice(0, -1).map(({ share }) => (upTo += share * 100));
  await client.query(COPIES, [size.threads, templates, bounds, size.owners, OWNER_OF_MANY]);
  await client.query("analyze copies");
  await client.query(THREADS);
  await copiesOf(client, "runs", {
    run_id: RUN_ID,
    thread_id: "c.thread_id",
    status: "case when c.status = 'idle' then t.status else c.status end",
    metadata: "t.metadata || c.metadata",
    available_at: "c.created_at",
    started_at: "c.created_at",
    created_at: "c.created_at + make_interval(mins => t.turn - 1)",
    updated_at: "c.updated_at",
  });
  await copiesOf(client, "checkpoints", { thread_id: "c.thread_id", run_id: RUN_ID });
  await copiesOf(client, "checkpoint_contents", { thread_id: "c.thread_id" });
};

const ASSISTANTS = `with new as (
  insert into threadloom.assistants (assistant_id, graph_id, name, metadata, version, created_at, updated_at)
  select gen_random_uuid(), 'two-step', 'Assistant ' || n,
    jsonb_build_object('owner', 'owner-' || n % $2, 'team', 'team-' || n % 50, 'created_by', 'user'), 1,
    now() - make_interval(mins => $1 - n), now() - make_interval(mins => $1 - n)
  from generate_series(1, $1::int) n returning *)
insert into threadloom.assistant_versions
  (assistant_id, version, graph_id, name, description, config, context, metadata, created_at)
select assistant_id, version, graph_id, name, description, config, context, metadata, created_at from new`;

/** $3: an assistant. None of the crons is ever due. */
const CRONS = `insert into threadloom.crons (cron_id, assistant_id, schedule, enabled, on_run_completed, metadata, payload,
    created_at, updated_at)
  select gen_random_uuid(), $3, '0 8 * * *', false, 'delete',
    jsonb_build_object('owner', 'owner-' || n % $2, 'team', 'team-' || n % 50), '{"input":{"messages":[]}}',
    now() - make_interval(mins => $1 - n), now() - make_interval(mins => $1 - n)
  from generate_series(1, $1::int) n`;

/** Ten memories of each user. */
const ITEMS = `insert into threadloom.store_items (namespace, key, value, created_at, updated_at)
  select array['users', 'user-' || n / 10, 'memories'], 'memory-' || n % 10,
    jsonb_build_object('text', 'likes tea, and asks for it in the morning', 'rank', n % 100, 'kind', 'kind-' || n % 7),
    now() - make_interval(secs => $1 - n), now() - make_interval(secs => $1 - n)
  from generate_series(1, $1::int) n`;

/**
 * Fills the database of a server. Its threads are copies of a few that have really run, under other ids, so their states and histories have
 * the server's format. `makeThread` creates a thread and lets the graph "two-step" run on it this many times. `progress` receives messages.
 */
export const fill = async (
  client: pg.Client,
  makeThread: (turns: number) => Promise<string>,
  size: Size,
  progress: (text: string) => void,
): Promise<Filled> => {
  const templates = [];
  for (const { turns } of TURNS) templates.push(await makeThread(turns));
  const longThreadId = await makeThread(size.longTurns);
  await client.query("set synchronous_commit = off");
  await client.query("set jit = off");
  await fillThreads(client, size, templates);
  progress(`${size.threads.toLocaleString("en-US")} threads`);
  await client.query(ASSISTANTS, [size.assistants, size.owners]);
  const { rows: assistants } = await client.query<{ assistant_id: string }>(
    "select assistant_id from threadloom.assistants limit 1",
  );
  await client.query(CRONS, [size.crons, size.owners, assistants[0]!.assistant_id]);
  await client.query(ITEMS, [size.storeItems]);
  const { rows } = await client.query<{ count: string }>("select count(*) from threadloom.checkpoints");
  const { rows: ran } = await client.query<{ thread_id: string }>(
    `select thread_id from copies where template_id <> $1 order by hashint4(n) limit 500`,
    [templates[0]],
  );
  return {
    threadIds: ran.map(({ thread_id: threadId }) => threadId),
    longThreadId,
    checkpoints: Number(rows[0]!.count),
  };
};

/** Does the work of autovacuum and the checkpointer, which would otherwise happen during the measurement. */
export const settle = async (client: pg.Client): Promise<void> => {
  await client.query("vacuum (analyze)");
  await client.query("checkpoint");
};
