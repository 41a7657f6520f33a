-- Whom the end of a run is told: an http(s) address, or a path of this server. Null for most. Its own column beside
-- `kwargs`, so that no statement that ends runs has to read what they were asked to do.
alter table runs add column webhook text;

-- What is to be told of runs that ended, written by the statement that ends them; see src/outbox/README.md. A run ends
-- once, so its id is the delivery's. No references: runs and threads may be deleted with the end, and are later.
create table webhook_deliveries (
  run_id            uuid primary key,
  thread_id         uuid not null,
  assistant_id      uuid not null,
  graph_id          text not null,
  url               text not null,
  receiver          text not null,               -- host and port of `url`; empty: this server's own routes
  -- The run as it ended; columns as in `runs`.
  run_status        text not null,
  error             jsonb,
  metadata          jsonb not null,
  config            jsonb not null,
  context           jsonb not null,
  kwargs            json not null,
  multitask_strategy text not null,
  run_created_at    timestamptz not null,
  run_started_at    timestamptz,
  run_ended_at      timestamptz not null default now(),
  final_values      bytea,                       -- null: the run had none, or they were too large
  values_omitted    boolean not null,
  -- The delivery.
  state             text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  attempts          integer not null default 0,  -- the fence: grows with each claim and each replay
  failures          integer not null default 0,
  due_at            timestamptz not null default now(), -- while it is being sent: when its holder counts as dead
  give_up_at        timestamptz not null default now() + interval '3 days',
  last_attempt_at   timestamptz,
  last_status       integer,                     -- what the receiver answered last
  last_error        text,
  settled_at        timestamptz                  -- when it was delivered or given up
);
create index webhook_deliveries_due on webhook_deliveries (due_at) include (run_ended_at) where state = 'pending';
create index webhook_deliveries_failed on webhook_deliveries (run_id) where state = 'failed';
create index webhook_deliveries_settled on webhook_deliveries (settled_at) where settled_at is not null;
create index webhook_deliveries_of_thread on webhook_deliveries (thread_id, run_id);
