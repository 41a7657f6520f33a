-- What a checkpoint costs on disk, halved: see docs/decisions/003-thread-state-by-difference.md.

-- What metadata of checkpoints have in common (graph, assistant, source) is kept with their shape, once.
alter table checkpoint_shapes add column metadata jsonb not null default '{}';

-- Body, channels and the writes that were stored together with the checkpoint are one text, separated by \x1d:
-- body, channels, then per task its id, \x1f and a line per write, as in checkpoint_writes. What a task wrote and what
-- it was given are much alike, and only within one value can PostgreSQL's compression make use of that.
alter table checkpoints add column record text;
update checkpoints set record = body || E'\x1d' || channels;
alter table checkpoints alter column record set not null, drop column body, drop column channels;

-- Only a rollback and a second attempt look for the checkpoints of a run: they scan those of its thread.
drop index checkpoints_by_run;

-- By default PostgreSQL compresses rows of more than 2,000 bytes only, and these are shorter. `main` keeps all in the
-- row: `extended` would move what is still too long for the target to the side table, at 60 bytes and a lookup each.
alter table checkpoints set (toast_tuple_target = 128);
alter table checkpoints alter column checkpoint_ns set storage main, alter column metadata set storage main,
  alter column metadata_text set storage main, alter column record set storage main,
  alter column segments set storage main, alter column contents set storage main;
alter table checkpoint_writes set (toast_tuple_target = 128);
alter table checkpoint_writes alter column checkpoint_ns set storage main, alter column task_name set storage main,
  alter column writes set storage main, alter column segments set storage main, alter column contents set storage main;
alter table checkpoint_elements set (toast_tuple_target = 128);
alter table checkpoint_elements alter column elements set storage main;
