-- The tables, in the order in which they refer to each other. src/platform/database/migrate.ts applies this file; the
-- schema is the first one of the search path.
-- What users say is `json`, which keeps the order of keys. Only metadata, which are searched through indexes, are `jsonb`.

-- Assistants ----------------------------------------------------------------------------------------------------------

create table assistants (
  assistant_id uuid primary key,
  graph_id     text not null,
  name         text not null,
  description  text,
  config       json not null default '{}',
  context      json not null default '{}',
  metadata     jsonb not null default '{}',
  version      integer not null,            -- the active version
  defaults     json,                        -- system assistants: {description, config, context} of the last deployment
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now()
);
create index assistants_by_metadata on assistants using gin (metadata jsonb_path_ops);
create index assistants_by_graph on assistants (graph_id, created_at);
create index assistants_by_creation on assistants (created_at);
-- The names of assistants as tools of MCP: protocols/mcp/tools/repository.ts has the same expressions.
create index assistants_by_tool on assistants
  (left(coalesce(nullif(trim(both '_' from regexp_replace(name, '[^A-Za-z0-9_-]+', '_', 'g')), ''), 'assistant'), 64));
create index assistants_by_long_tool on assistants
  ((left(left(coalesce(nullif(trim(both '_' from regexp_replace(name, '[^A-Za-z0-9_-]+', '_', 'g')), ''), 'assistant'), 64), 55)
    || '_' || right(assistant_id::text, 8)));

create table assistant_versions (
  assistant_id uuid not null references assistants on delete cascade,
  version      integer not null,
  graph_id     text not null,
  name         text not null,
  description  text,
  config       json not null,
  context      json not null,
  metadata     jsonb not null,
  created_at   timestamptz not null default now(),
  primary key (assistant_id, version)
);

-- Threads -------------------------------------------------------------------------------------------------------------

-- A run changes the row of its thread twice. PostgreSQL leaves the indexes alone if no indexed column has changed and
-- the page has room for the new row: see docs/decisions/011-threads-updated-in-place.md.
create table threads (
  thread_id         uuid primary key,
  status            text not null default 'idle' check (status in ('idle', 'busy', 'interrupted', 'error')),
  resting_status    text not null default 'idle', -- `status` before the thread got busy
  metadata          jsonb not null default '{}',
  config            json not null default '{}',
  interrupts        json not null default '{}',   -- {task_id: [{id, value}]} of the head checkpoint
  error             json,                         -- {error, message} of the last run, if it failed
  -- Runs that are pending or running. A counter, because creating and ending a run lock this row, and READ COMMITTED
  -- reads only the locked row again after a wait: see docs/decisions/002-multitask-in-the-database.md.
  unfinished_runs   integer not null default 0 check (unfinished_runs >= 0),
  -- Grows with each new run and each attempt that returns to the queue: see src/engine/queue/README.md, "Turns".
  turns             integer not null default 0,
  -- Grows with each change of the row. A state update is stored only if the version it has read is still the newest.
  version           bigint not null default 0,
  ttl_strategy      text check (ttl_strategy in ('delete', 'keep_latest')),
  ttl_minutes       double precision,
  expires_at        timestamptz,
  pushes            boolean,                      -- true: tasks here have push notifications; otherwise null
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  state_updated_at  timestamptz not null default now(),
  -- Each run changes the times above; the indexes hold the ten minutes in which they lie.
  updated_bin       timestamptz not null
    generated always as (date_bin('10 minutes', updated_at, timestamptz '2000-01-01 00:00:00+00')) stored,
  state_updated_bin timestamptz not null
    generated always as (date_bin('10 minutes', state_updated_at, timestamptz '2000-01-01 00:00:00+00')) stored,
  expires_bin       timestamptz
    generated always as (date_bin('10 minutes', expires_at, timestamptz '2000-01-01 00:00:00+00')) stored
) with (fillfactor = 80);
-- All threads of an assistant share two keys. With `fastupdate` their lists are rewritten once for many threads, not for
-- each. A search reads the list of pending entries from end to end, hence the smallest bound (in kB; the default is 4 MB).
create index threads_by_metadata on threads using gin (metadata jsonb_path_ops)
  with (fastupdate = on, gin_pending_list_limit = 64);
create index threads_by_creation on threads (created_at);
create index threads_by_update on threads (updated_bin);
create index threads_by_state_update on threads (state_updated_bin);
create index threads_by_expiry on threads (expires_bin) where expires_bin is not null;
-- Threads that wait for a person, or failed. Busy threads are found by their runs, the others by any index.
create index threads_by_resting_status on threads (resting_status, created_at) where resting_status <> 'idle';

-- Both triggers serve statements that set neither column. Hot statements do, and so call no function.
create function keep_resting_status() returns trigger language plpgsql as $$
begin
  new.resting_status := new.status;
  return new;
end
$$;
create trigger threads_resting_status before insert or update of status on threads for each row
  when (new.status <> 'busy' and new.status <> new.resting_status) execute function keep_resting_status();

create function count_thread_version() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;
create trigger threads_version before update on threads for each row
  when (new.version = old.version) execute function count_thread_version();

-- Runs ----------------------------------------------------------------------------------------------------------------

-- The table of runs is the queue: see src/engine/queue/README.md.
create table runs (
  run_id             uuid primary key,
  thread_id          uuid not null references threads on delete cascade,
  assistant_id       uuid not null,
  graph_id           text not null,               -- of the assistant's version that was active at creation
  status             text not null check (status in ('pending', 'running', 'error', 'success', 'timeout', 'interrupted')),
  -- The request.
  metadata           jsonb not null default '{}',
  config             json not null default '{}',  -- assistant's, thread's and request's, merged at creation
  context            json not null default '{}',
  kwargs             json not null,               -- the rest of the request
  multitask_strategy text not null check (multitask_strategy in ('reject', 'enqueue', 'interrupt', 'rollback')),
  resumable          boolean not null default false,
  delete_thread      boolean not null default false, -- threadless run with on_completion = delete
  webhook            text,                        -- http(s) address or path of this server; kwargs are not read for it
  auth_user          json,                        -- the user of the project's own `Auth`, for the graph alone
  caller             text,                        -- digest of the creator, for limits per caller; null: no name
  -- What a rollback puts back: metadata and config of the thread that creating the run replaced.
  replaced_metadata  jsonb,
  replaced_config    json,
  -- The execution.
  error              json,                        -- {error, message}
  cancel_action      text check (cancel_action in ('interrupt', 'rollback')),
  cancel_reason      text check (cancel_reason in ('requested', 'taken', 'replaced', 'disconnected')),
  attempt            integer not null default 0,  -- the fencing token: every write of an attempt carries it
  lost_attempts      integer not null default 0,  -- attempts that lost their worker, for MAX_ATTEMPTS
  turn               integer not null default 0,  -- of the newest attempt; 0 before the first
  worker_id          uuid,
  reader_id          uuid,                        -- the process that streams the run to its creator
  lease_until        timestamptz,
  behind             boolean not null default false, -- another run of the thread comes first
  available_at       timestamptz not null default now(),
  started_at         timestamptz,                 -- start of the first attempt
  created_at         timestamptz not null default clock_timestamp(),
  updated_at         timestamptz not null default clock_timestamp(), -- of an ended run: its end
  strings            uuid[],                      -- large strings of kwargs: rows of checkpoint_contents
  string_bytes       integer                      -- bytes of these strings
) with (fillfactor = 80);
-- As run_events_with_strings.
create index runs_with_strings on runs (thread_id) where strings is not null;
-- One run at a time per thread: a run that has begun keeps its thread until it ends, also while it waits for another
-- process. Also what the sweep for expired leases scans, so that leases need no index.
create unique index runs_one_begun_per_thread on runs (thread_id)
  where status = 'running' or (status = 'pending' and attempt > 0);
-- Runs that may start, by graph and lane, in the order in which they became available: see src/engine/queue/sql/lanes.ts, which has the
-- same expression. The cost of a claim depends on neither how many runs wait nor why.
create index runs_claimable on runs (graph_id,
  (case when status = 'pending' and not behind
    then case when available_at > created_at then 0 else coalesce(hashtext(caller), 1) end end),
  available_at, created_at, run_id)
  where (case when status = 'pending' and not behind
    then case when available_at > created_at then 0 else coalesce(hashtext(caller), 1) end end) is not null;
create index runs_behind on runs (thread_id, created_at, run_id) where status = 'pending' and behind;
create index runs_pending_of_thread on runs (thread_id, created_at, run_id) where status = 'pending';
create index runs_pending_of_caller on runs (caller) where status = 'pending' and caller is not null;
create index runs_by_thread on runs (thread_id, created_at);
-- Tasks of the A2A protocol, newest status first. Other runs are never entered here.
create index runs_of_a2a on runs (assistant_id, updated_at desc, run_id desc) where metadata ->> 'origin' = 'a2a';
-- Run ids follow the order of creation. A successful run is never entered here.
create index runs_failed on runs (status, run_id) where status in ('error', 'timeout', 'interrupted');
-- Ended threadless runs that another process was still reading; a sweep removes them.
create index runs_ended_threadless on runs (updated_at)
  where delete_thread and status not in ('pending', 'running');

-- What a run streamed, kept when the run is resumable or is read on another process. A statement that removes a run
-- removes its events, too.
create table run_events (
  thread_id  uuid not null references threads on delete cascade,
  run_id     uuid not null,
  seq        bigint not null,                     -- from 0, given by the attempt: no gaps a reader could skip
  thread_seq bigint,                              -- the event's id within its thread, see src/engine/events/event-ids.ts
  event      text not null,
  data       text not null,                       -- one line of JSON, as it goes out
  checkpoint_id uuid,                             -- of the state that it shows, for who joins the run with that
  strings    uuid[],                              -- its large strings: rows of checkpoint_contents
  string_bytes integer,                           -- bytes of these strings
  created_at timestamptz not null default now(),
  primary key (thread_id, run_id, seq)
);
create index run_events_by_age on run_events (created_at);
-- A content is freed only if no event refers to it. Hardly any event is entered here.
create index run_events_with_strings on run_events (thread_id) where strings is not null;

-- What runs did: see src/engine/traces/README.md.
create table run_traces (
  run_id     uuid not null references runs on delete cascade, -- version 7: ordered by time, so old rows come first
  attempt    integer not null,
  part       integer not null,                    -- from 0; a long attempt has several
  thread_id  uuid not null,
  started_at timestamptz not null,                -- of the attempt, by its server's clock
  spans      text not null,                       -- JSON objects separated by commas
  created_at timestamptz not null default now(),
  primary key (run_id, attempt, part)
);

-- Tokens of models. Rows outlive their runs and threads.
create table model_usage (
  thread_id    uuid not null,
  run_id       uuid not null,
  attempt      integer not null,
  part         integer not null,                  -- as in run_traces
  model        text not null,
  assistant_id uuid not null,
  graph_id     text not null,
  caller       text,                              -- as in runs
  calls        integer not null,
  input_tokens          bigint not null,
  output_tokens         bigint not null,
  cache_read_tokens     bigint not null,          -- of the input
  cache_creation_tokens bigint not null,          -- of the input
  reasoning_tokens      bigint not null,          -- of the output
  cost         numeric,                           -- null: the model has no price
  created_at   timestamptz not null default now(),
  primary key (thread_id, run_id, attempt, part, model)
);
create index model_usage_by_age on model_usage (created_at);
create index model_usage_of_caller on model_usage (caller, created_at);
create index model_usage_of_assistant on model_usage (assistant_id, created_at);

-- Which graphs the processes host that execute runs: see src/engine/queue/hosting.ts.
create table workers (
  worker_id uuid primary key,
  graph_ids text[] not null,
  seen_at   timestamptz not null default now()
);

-- Crons ---------------------------------------------------------------------------------------------------------------

create table crons (
  cron_id          uuid primary key,
  assistant_id     uuid not null, -- no reference: a cron whose assistant is deleted stays, and `error` says so
  thread_id        uuid references threads on delete cascade, -- null: each run gets a thread of its own
  schedule         text not null,
  timezone         text,                                      -- IANA; null: UTC
  end_time         timestamptz,                               -- nothing is fired at this time or later
  enabled          boolean not null default true,
  on_run_completed text check (on_run_completed in ('delete', 'keep')), -- null where the cron has a thread
  user_id          text,
  auth_user        json,                                      -- as in runs
  caller           text,                                      -- as in runs
  metadata         jsonb not null default '{}',
  payload          text not null,                             -- JSON, the request for a run; text keeps NUL
  next_run_date    timestamptz,                               -- null: disabled, or its time is over
  error            text,                                      -- why the server disabled it
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now()
);
create index crons_due on crons (next_run_date) where next_run_date is not null;
create index crons_of_caller on crons (caller) where caller is not null;
create index crons_by_thread on crons (thread_id) where thread_id is not null;
create index crons_by_assistant on crons (assistant_id);
create index crons_by_creation on crons (created_at);

-- Skips crons that are being fired: their runs wait for the assistant's row, and both would wait for each other. Such a
-- cron is disabled when it is due again.
create function stop_crons_of_assistant() returns trigger language plpgsql as $$
begin
  execute format('update %1$I.crons set enabled = false, next_run_date = null, error = $1 where cron_id in (
      select cron_id from %1$I.crons where assistant_id = $2 for update skip locked)', tg_table_schema)
    using format('Assistant ''%s'' not found.', old.assistant_id), old.assistant_id;
  return old;
end
$$;
create trigger assistants_crons after delete on assistants for each row execute function stop_crons_of_assistant();

-- Checkpoints ---------------------------------------------------------------------------------------------------------

-- Thread state, stored by difference: see docs/decisions/003-thread-state-by-difference.md. No reference to threads:
-- the saver works for threads that this server does not know, and deleting a thread deletes here explicitly.

-- The channels and nodes to which the versions of a checkpoint belong. Few per graph, whatever the number of threads.
create table checkpoint_names (
  hash     uuid primary key,                 -- the first half of the text's SHA-256
  names    text not null,                    -- see src/state/checkpoints/names.ts
  metadata jsonb not null                    -- what the metadata of checkpoints have in common
);

-- One row per checkpoint. Its texts hold small values, and refer to contents for all others.
create table checkpoints (
  thread_id     uuid not null,
  checkpoint_ns text collate "C" not null,   -- '' is the root graph, else the path of a subgraph
  checkpoint_id uuid not null,               -- version 6: the time of a process, whose clock may step back
  seq           bigint generated by default as identity, -- the order: the newest of a graph has the highest
  parent_id     uuid,
  run_id        uuid,                        -- the run whose attempt wrote it, null for a state update
  metadata      jsonb not null,              -- for filters
  metadata_text text,                        -- the exact metadata, where jsonb can't hold them (NUL, lone surrogates)
  names         uuid not null,               -- in checkpoint_names
  record        text not null,               -- versions and channels: see src/state/checkpoints/record.ts
  writes        text,                        -- of tasks, as in checkpoint_writes, if they came with the checkpoint
  delta_channels text[],                     -- LangGraph puts their values together from the writes of ancestors
  contents      uuid[],                      -- the contents to which record and writes refer
  hidden        boolean,                     -- true after a prune: later checkpoints need it, but its own state is incomplete
  primary key (thread_id, checkpoint_ns, checkpoint_id)
);
create unique index checkpoints_by_seq on checkpoints (thread_id, checkpoint_ns, seq);

-- What the tasks of a step wrote, before the next checkpoint holds it. One row per task and run: the writes of a run
-- that resumed another's step can be taken back alone. Rows of one task are put together in the order of written_at.
create table checkpoint_writes (
  thread_id     uuid not null,
  checkpoint_ns text collate "C" not null,
  checkpoint_id uuid not null,
  task_id       uuid not null,
  run_id        uuid not null,               -- zeros for a state update
  written_at    timestamptz not null default clock_timestamp(),
  ended         boolean not null,            -- the task has written more than an answer, a question or an error
  writes        text not null,               -- see src/state/checkpoints/record.ts
  contents      uuid[],
  primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, run_id)
);

-- Parts of the texts of a thread: large values, parts of lists, large strings. Each is stored once, under its hash.
create table checkpoint_contents (
  thread_id uuid not null,
  hash      uuid not null,                   -- the first half of the text's SHA-256
  content   text not null,
  contents  uuid[],                          -- the contents to which this one refers
  -- The content is in the object store, and `content` names only the key of its encryption.
  object_id uuid,
  object_bytes integer,
  primary key (thread_id, hash)
);
-- Contents that an object store may take.
create index checkpoint_contents_large on checkpoint_contents (thread_id, hash) where octet_length(content) >= 32768;
create index checkpoint_contents_by_object on checkpoint_contents (object_id) where object_id is not null;

-- Objects to which no row refers: on their way to the object store, or of deleted contents.
create table unused_objects (
  thread_id uuid not null,
  object_id uuid not null,
  hash      uuid,                            -- of the content that is on its way; null: the object has to go
  since     timestamptz not null default now(),
  removing  boolean not null default false,  -- true: no row may refer to it any more
  primary key (object_id, thread_id)
);
create unique index unused_objects_on_their_way on unused_objects (thread_id, hash) where hash is not null;
create index unused_objects_by_age on unused_objects (since);

-- Store ---------------------------------------------------------------------------------------------------------------

-- JSON values under hierarchical namespaces, shared by all threads.
create table store_items (
  -- Compared by bytes, label by label: "all that begins with {a, b}" is the exact range from {a, b} to {a, b || chr(1)}
  -- of the primary key. Joined labels and LIKE would need escaping, and would take {ab} for a child of {a}.
  namespace   text[] collate "C" not null check (cardinality(namespace) > 0),
  key         text collate "C" not null,
  value       json not null,
  ttl_minutes double precision check (ttl_minutes > 0),   -- what a refresh adds
  expires_at  timestamptz,                                -- invisible from then on, removed by the sweep later
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (namespace, key),
  check ((ttl_minutes is null) = (expires_at is null))
);
create index store_items_by_expiry on store_items (expires_at) where expires_at is not null;
create index store_items_by_update on store_items (updated_at);

-- A value as JavaScript's Number() sees it, for $gt, $gte, $lt and $lte; null if it is no number. The bounds on length
-- and exponent keep the cast from failing: one odd item must not break a search.
create function store_number(value jsonb) returns numeric
  language sql immutable parallel safe
  as $$
    select case jsonb_typeof(value)
      when 'number' then (value #>> '{}')::numeric
      when 'boolean' then case when value = 'true' then 1 else 0 end
      when 'null' then 0
      when 'string' then
        case
          when length(value #>> '{}') > 300 then null
          when btrim(value #>> '{}', E' \t\n\r') = '' then 0
          when btrim(value #>> '{}', E' \t\n\r') ~ '^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$'
            then btrim(value #>> '{}', E' \t\n\r')::numeric
        end
    end
  $$;

-- Deliveries ----------------------------------------------------------------------------------------------------------

-- Webhooks, written by the statement that ends a run, and push notifications of the A2A protocol: see
-- src/engine/outbox/README.md. A webhook has no references: runs and threads may be deleted with the end, and are later.
-- A push notification is a configuration and its delivery in one: where a task is sent when its run ends.
create table deliveries (
  delivery_id        uuid primary key,           -- of a webhook: its run's, which ends once
  kind               text not null check (kind in ('webhook', 'push')),
  thread_id          uuid not null,
  caller             text not null default '',   -- runs.caller; empty: no name
  receiver           text not null,              -- host and port; empty: this server's own routes
  state              text not null default 'pending' check (state in ('idle', 'pending', 'delivered', 'failed')), -- idle: no end yet
  attempts           integer not null default 0, -- the fence: grows with each claim, each replay and each end of a task's run
  failures           integer not null default 0,
  due_at             timestamptz not null default now(), -- while it is being sent: when its holder counts as dead
  give_up_at         timestamptz not null default now() + interval '3 days',
  last_attempt_at    timestamptz,
  last_status        integer,                    -- what the receiver answered last
  last_error         text,
  settled_at         timestamptz,                -- when it was delivered or given up
  created_at         timestamptz not null default now(),
  -- Of a push notification.
  task_run_id        uuid references runs on delete cascade, -- the first run of the task
  configuration      text,                       -- JSON: id, url, token, scheme, credentials, version
  -- Of a webhook: the run as it ended; columns as in `runs`.
  run_id             uuid,
  assistant_id       uuid,
  graph_id           text,
  url                text,
  run_status         text,
  error              json,
  metadata           jsonb,
  config             json,
  context            json,
  kwargs             json,                       -- null: too large to be sent
  multitask_strategy text,
  run_created_at     timestamptz,
  run_started_at     timestamptz,
  run_ended_at       timestamptz default now(),
  final_values       bytea,                      -- null: the run had none, or they were too large
  values_omitted     boolean
);
create index deliveries_due on deliveries (due_at) include (kind, run_ended_at, receiver, caller) where state = 'pending';
create index deliveries_failed on deliveries (delivery_id) where state = 'failed' and kind = 'webhook';
create index deliveries_settled on deliveries (settled_at) where settled_at is not null and kind = 'webhook';
create index deliveries_of_thread on deliveries (thread_id, delivery_id) where kind = 'webhook';
create index deliveries_of_task on deliveries (task_run_id) where task_run_id is not null;

-- Keys ----------------------------------------------------------------------------------------------------------------

-- API keys of `keys create`, beside those of the configuration. The keys themselves are stored nowhere.
create table api_keys (
  key_id       text primary key,            -- the first 12 hexadecimal digits of the hash
  key_hash     bytea not null check (length(key_hash) = 32),  -- SHA-256
  name         text not null,
  scopes       text[] not null check (cardinality(scopes) > 0),
  expires_at   timestamptz,                                   -- null: never
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,                                   -- a minute late at most; null: never used
  revoked_at   timestamptz                  -- revoked keys stay: they say that access is controlled
);
create unique index api_keys_by_name on api_keys (name) where revoked_at is null;

-- Counts the changes of api_keys but those of `last_used_at`. Servers read this row twice a second, and the keys only
-- when it has changed. No sequence: the count has to become visible together with the change.
create table api_key_changes (
  one_row boolean primary key default true check (one_row),
  version bigint not null
);
insert into api_key_changes (version) values (1);

create function count_api_key_change() returns trigger language plpgsql as $$
begin
  execute format('update %I.api_key_changes set version = version + 1', tg_table_schema);
  return null;
end
$$;
create trigger api_keys_changes
  after insert or delete or truncate or update of key_hash, scopes, expires_at, revoked_at on api_keys
  for each statement execute function count_api_key_change();

-- The keys that any value here was ever encrypted with: see src/platform/encryption/. No row: nothing is encrypted.
create table encryption_keys (
  key_id     text primary key,
  proof      text not null,                 -- a known text, encrypted: a server that opens it has the right key
  created_at timestamptz not null default now()
);

-- Which server encrypts with which key: `encryption forget` refuses a key that a server may still encrypt with.
create table encrypting_servers (
  server_id uuid primary key,
  key_id    text not null,
  until     timestamptz not null           -- each server moves it on; in the past: when the server stopped
);

-- JSON ----------------------------------------------------------------------------------------------------------------

-- The members of `low` that `high` does not have, then those of `high`: the order of the last author stays whole. Null
-- counts as left out.
create function merge_json(low json, high json) returns json language plpgsql immutable parallel safe as $$
begin
  if high is null or high::text = '{}' or high::text = low::text then
    return coalesce(low, high);
  elsif low is null or low::text = '{}' then
    return high;
  end if;
  return (
    select '{' || string_agg(to_json(key) || ':' || coalesce(h.value, l.value), ',' order by h.place nulls first, l.place) || '}'
    from json_each(low) with ordinality as l (key, value, place)
      full join json_each(high) with ordinality as h (key, value, place) using (key));
end
$$;

-- Pages of records ----------------------------------------------------------------------------------------------------

-- What a page of records weighs, up to the row with which it is full: see src/platform/database/bounded-reads.ts. Only
-- reading a long value tells the length of its text, and a page whose rows were all weighed took as long as their writers
-- liked.
create function add_weight(weight bigint, room bigint, octets bigint, metadata jsonb, a json, b json, c json)
  returns bigint language plpgsql immutable parallel safe as $$
begin
  if weight >= room then
    return weight;
  end if;
  return weight + octets + coalesce(octet_length(metadata::text), 0) + coalesce(octet_length(a::text), 0)
    + coalesce(octet_length(b::text), 0) + coalesce(octet_length(c::text), 0);
end
$$;

create aggregate weight_within(room bigint, octets bigint, metadata jsonb, a json, b json, c json)
  (sfunc = add_weight, stype = bigint, initcond = '0');
