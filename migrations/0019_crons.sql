-- Runs that are made again and again, at the times of a schedule. 
create table crons (
  cron_id          uuid primary key,
  -- No reference: a cron whose assistant is deleted stays, and says why it stands still.
  assistant_id     uuid not null,
  thread_id        uuid references threads on delete cascade, -- null: each run gets a thread of its own
  schedule         text not null,
  timezone         text,                                      -- IANA; null: UTC
  end_time         timestamptz,                               -- nothing is fired at this time or later
  enabled          boolean not null default true,
  on_run_completed text check (on_run_completed in ('delete', 'keep')), -- null where the cron has a thread
  user_id          text,
  metadata         jsonb not null default '{}',
  -- The request for a run, as JSON. Text keeps NUL, and its length is known without reading it.
  payload          text not null,
  -- The due time; null: nothing will be fired, since the cron is disabled or its time is over.
  next_run_date    timestamptz,
  error            text,                                      -- why the server disabled it
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now()
);
create index crons_due on crons (next_run_date) where next_run_date is not null;
create index crons_by_thread on crons (thread_id) where thread_id is not null;
create index crons_by_assistant on crons (assistant_id);
create index crons_by_creation on crons (created_at);

create function stop_crons_of_assistant() returns trigger language plpgsql as $$
begin
  execute format('update %I.crons set enabled = false, next_run_date = null, error = $1 where assistant_id = $2', tg_table_schema)
    using format('Assistant ''%s'' not found.', old.assistant_id), old.assistant_id;
  return old;
end
$$;
create trigger assistants_crons after delete on assistants for each row execute function stop_crons_of_assistant();
