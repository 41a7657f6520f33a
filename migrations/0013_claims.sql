-- What a claim costs must depend on neither how many runs wait, nor on why they can't start: see src/engine/claims.ts.

-- True while another run of the thread comes first, for one that need not wait for its time. What is here already may
-- be looked at: that costs time, never order.
alter table runs add column behind boolean not null default false;
create index runs_behind on runs (thread_id, created_at, run_id) where status = 'pending' and behind;

drop index runs_pending;
create index runs_claimable on runs (graph_id, available_at, created_at, run_id)
  where status = 'pending' and not behind;

-- Which graphs the processes host that execute runs: see src/engine/hosting.ts.
create table workers (
  worker_id uuid primary key,
  graph_ids text[] not null,
  seen_at   timestamptz not null default now()
);
