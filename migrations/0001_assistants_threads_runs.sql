-- The nouns of the mission. Hot tables are keyed by thread, so that they can be distributed by it.

create table assistants (
  assistant_id uuid primary key,
  graph_id     text not null,
  name         text not null,
  description  text,
  config       jsonb not null default '{}',
  context      jsonb not null default '{}',
  metadata     jsonb not null default '{}',
  version      integer not null,            -- the active version
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now()
);
create index assistants_by_metadata on assistants using gin (metadata jsonb_path_ops);
create index assistants_by_graph on assistants (graph_id, created_at);
create index assistants_by_creation on assistants (created_at);

create table assistant_versions (
  assistant_id uuid not null references assistants on delete cascade,
  version      integer not null,
  graph_id     text not null,
  name         text not null,
  description  text,
  config       jsonb not null,
  context      jsonb not null,
  metadata     jsonb not null,
  created_at   timestamptz not null default now(),
  primary key (assistant_id, version)
);

create table threads (
  thread_id        uuid primary key,
  status           text not null default 'idle' check (status in ('idle', 'busy', 'interrupted', 'error')),
  metadata         jsonb not null default '{}',
  config           jsonb not null default '{}',
  interrupts       jsonb not null default '{}',   -- {task_id: [{id, value}]} of the head checkpoint
  error            jsonb,                         -- {error, message} of the last run, if it failed
  -- Runs that are pending or running. A counter on the thread's own row, because that row is what
  -- creating and finishing a run lock: under READ COMMITTED only the locked row is read afresh after a
  -- wait, a look into the table runs would see the past. See docs/decisions/002-multitask-in-the-database.md.
  unfinished_runs  integer not null default 0 check (unfinished_runs >= 0),
  ttl_strategy     text check (ttl_strategy in ('delete', 'keep_latest')),
  ttl_minutes      double precision,
  expires_at       timestamptz,
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now(),
  state_updated_at timestamptz not null default now()
);
create index threads_by_metadata on threads using gin (metadata jsonb_path_ops);
create index threads_by_creation on threads (created_at);
create index threads_by_update on threads (updated_at);
create index threads_by_state_update on threads (state_updated_at);
create index threads_by_status on threads (status, updated_at);
create index threads_by_expiry on threads (expires_at) where expires_at is not null;

-- The table of runs is the queue.
create table runs (
  run_id             uuid primary key,
  thread_id          uuid not null references threads on delete cascade,
  assistant_id       uuid not null,
  graph_id           text not null,               -- of the assistant's version that was active at creation
  status             text not null check (status in ('pending', 'running', 'error', 'success', 'timeout', 'interrupted')),
  metadata           jsonb not null default '{}',
  config             jsonb not null default '{}', -- assistant's, thread's and request's, merged at creation
  context            jsonb not null default '{}',
  kwargs             json not null,               -- the rest of the request; json, not jsonb: keeps NUL in messages
  multitask_strategy text not null check (multitask_strategy in ('reject', 'enqueue', 'interrupt', 'rollback')),
  resumable          boolean not null default false,
  delete_thread      boolean not null default false, -- threadless run with on_completion = delete
  error              jsonb,                       -- {error, message}
  cancel_action      text check (cancel_action in ('interrupt', 'rollback')),
  attempt            integer not null default 0,  -- the fencing token: every write of an attempt carries it
  worker_id          uuid,
  -- The process that streams the run to whoever created it: another one that executes it writes its events to
  -- the event log, since the two share nothing but the database.
  reader_id          uuid,
  lease_until        timestamptz,
  available_at       timestamptz not null default now(),
  created_at         timestamptz not null default clock_timestamp(),
  updated_at         timestamptz not null default clock_timestamp()
) with (fillfactor = 80);
-- One run at a time per thread, whatever the processes do. Also what the sweep for expired leases scans: it
-- holds only what runs now, so leases need no index of their own that each heartbeat would have to update.
create unique index runs_one_running_per_thread on runs (thread_id) where status = 'running';
create index runs_pending on runs (created_at, run_id) where status = 'pending';
create index runs_pending_of_thread on runs (thread_id, created_at, run_id) where status = 'pending';
create index runs_by_thread on runs (thread_id, created_at);

-- What a run streamed, kept when the run is resumable or is read on another process.
create table run_events (
  thread_id  uuid not null,
  run_id     uuid not null references runs on delete cascade,
  seq        bigint not null,                     -- from 0, given by the attempt: no gaps a reader could skip
  event      text not null,
  data       text not null,                       -- one line of JSON, as it goes out
  created_at timestamptz not null default now(),
  primary key (run_id, seq)
);
create index run_events_by_age on run_events (created_at);
