-- When the first attempt of a run began; null before, and for runs that began before there was this column. When a run
-- ended stands in updated_at, which nothing changes after the end.
alter table runs add column started_at timestamptz;
