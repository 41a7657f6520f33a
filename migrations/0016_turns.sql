-- The attempts of a thread in the order in which they began: see src/queue/README.md, "Turns".

-- Grows with each run that is created, and when an attempt goes back to the queue. Never less than unfinished_runs.
alter table threads add column turns integer not null default 0;
update threads set turns = unfinished_runs where unfinished_runs > 0;

-- Of the newest attempt; 0 before the first, and for attempts from before.
alter table runs add column turn integer not null default 0;
