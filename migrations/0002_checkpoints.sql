-- Thread state, stored by difference: see docs/decisions/003-thread-state-by-difference.md.
-- Every table is keyed by thread first, so that it can be distributed by it. There is no foreign key to threads:
-- the saver can be used for a thread that this server doesn't know; deleting a thread deletes here explicitly.

-- Which channels and nodes the versions of a checkpoint belong to. Few per graph, whatever the number of threads.
create table checkpoint_shapes (
  hash  uuid primary key,                    -- the first half of the text's SHA-256
  shape text not null                        -- [[channel, …], [[node, [channel, …]], …]]
);

-- One row per checkpoint. It holds no conversation: values are small, or refer to lists and contents below.
create table checkpoints (
  thread_id     uuid not null,
  checkpoint_ns text collate "C" not null,   -- '' is the root graph, else the path of a subgraph
  checkpoint_id uuid not null,               -- version 6: ordered by time
  parent_id     uuid,
  run_id        uuid,                        -- the run whose attempt wrote it, null for a state update
  metadata      jsonb not null,              -- for filters
  metadata_text text,                        -- the exact metadata, where jsonb can't hold them (NUL, lone surrogates)
  body          text not null,               -- {v, ts, n}: n are the versions, in the order of the shape
  shape         uuid not null,               -- in checkpoint_shapes
  channels      text not null,               -- {channel: {v: value} or {c: content hash}, l: its lists' segments}
  segments      bigint[],                    -- all segments of the channels, flat triples: list, first position, end
  contents      uuid[],                      -- all content hashes of the channels
  primary key (thread_id, checkpoint_ns, checkpoint_id)
);
create index checkpoints_by_run on checkpoints (thread_id, run_id) where run_id is not null;

-- What the tasks of a step wrote, before the next checkpoint holds it. One row per task and run: the writes of a run
-- that resumed another's step can be taken back alone. Rows of one task are put together in the order of written_at.
create table checkpoint_writes (
  thread_id     uuid not null,
  checkpoint_ns text collate "C" not null,
  checkpoint_id uuid not null,
  task_id       uuid not null,
  run_id        uuid not null,               -- zeros for a state update
  task_name     text,                        -- the task's id, where it is no UUID
  written_at    timestamptz not null default clock_timestamp(),
  writes        text not null,               -- a line per write: index,channel,{v, c, l}
  segments      bigint[],
  contents      uuid[],
  primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id)
);

-- The elements of lists, in runs: a row holds the elements [position, position + count) of a list as lines of JSON.
-- Never updated and never taken back, so that what a process remembers of a list stays true; two that append at the
-- same position collide on the primary key, and the later one goes on in a list of its own.
create table checkpoint_elements (
  thread_id uuid not null,
  list_id   bigint not null,
  position  integer not null,
  count     integer not null check (count between 0 and 256), -- 0: the place is taken, what stood there was pruned
  elements  text not null,
  primary key (thread_id, list_id, position)
);

-- Values too large for a checkpoint's row, once per content.
create table checkpoint_contents (
  thread_id uuid not null,
  hash      uuid not null,                   -- the first half of the text's SHA-256
  content   text not null,
  primary key (thread_id, hash)
);

-- Puts the writes of a task together with those that it wrote before in the same run: special ones (index below 0: error,
-- interrupt, resume) replace, of the others the first stays, as in every saver of LangGraph.
-- Lines and not a json array: the functions of json fail on NUL in text, even where they don't look at it.
create function merge_writes(stored text, given text) returns text language sql immutable parallel safe as $$
  with s as (select line, split_part(line, ',', 1)::integer as index from string_to_table(stored, E'\n') as line),
       g as (select line, split_part(line, ',', 1)::integer as index from string_to_table(given, E'\n') as line)
  select string_agg(line, E'\n' order by index)
  from (
    select line, index from s where index >= 0 or not exists (select from g where g.index = s.index)
    union all
    select line, index from g where index < 0 or not exists (select from s where s.index = g.index)
  ) as merged
$$;
