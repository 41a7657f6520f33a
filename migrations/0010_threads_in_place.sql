-- A run changes the row of its thread twice, and each change made a new entry in every index of the table: 7.2 KB of WAL
-- per run of two steps, 5.0 without. PostgreSQL leaves the indexes alone if no indexed column has changed and the page
-- has room for the new row. See docs/decisions/011-threads-updated-in-place.md.
alter table threads set (fillfactor = 80);

alter table threads
  -- What `status` was before the thread got busy, and will be again if nothing comes of its runs.
  add column resting_status text not null default 'idle',
  -- What is indexed instead of the times, which every run changes: in which ten minutes they lie.
  add column updated_bin timestamptz not null
    generated always as (date_bin('10 minutes', updated_at, timestamptz '2000-01-01 00:00:00+00')) stored,
  add column state_updated_bin timestamptz not null
    generated always as (date_bin('10 minutes', state_updated_at, timestamptz '2000-01-01 00:00:00+00')) stored,
  add column expires_bin timestamptz
    generated always as (date_bin('10 minutes', expires_at, timestamptz '2000-01-01 00:00:00+00')) stored;

drop index threads_by_update, threads_by_state_update, threads_by_status, threads_by_expiry;

update threads set resting_status = case when status <> 'busy' then status when error is not null then 'error'
  when interrupts <> '{}' then 'interrupted' else 'idle' end
where status <> 'idle';

-- By a trigger, since a server of the version before, which may still run beside this one, doesn't know the column. It
-- is called only where the value changes, which is rare.
create function keep_resting_status() returns trigger language plpgsql as $$
begin
  new.resting_status := new.status;
  return new;
end
$$;
create trigger threads_resting_status before insert or update of status on threads for each row
  when (new.status <> 'busy' and new.status <> new.resting_status) execute function keep_resting_status();

create index threads_by_update on threads (updated_bin);
create index threads_by_state_update on threads (state_updated_bin);
create index threads_by_expiry on threads (expires_bin) where expires_bin is not null;
-- Threads that wait for a person, or failed. Those that are busy are found by their runs, the others by any index.
create index threads_by_resting_status on threads (resting_status, created_at) where resting_status <> 'idle';
