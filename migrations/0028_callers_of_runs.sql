-- Who created a run or a cron, as a digest: how many of a caller's runs wait is counted by it. Null: a caller without a name.
alter table runs add column caller text;
alter table crons add column caller text;
create index runs_pending_of_caller on runs (caller) where status = 'pending' and caller is not null;
