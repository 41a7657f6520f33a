-- What a checkpoint costs on disk, halved: see docs/decisions/003-thread-state-by-difference.md.

-- What the metadata of checkpoints have in common (graph, assistant, source) is kept with their shape, once.
alter table checkpoint_shapes add column metadata jsonb not null default '{}';

-- Versions, channels and the writes that are stored together with the checkpoint become one text: the format stands in
-- src/checkpoints/row-text.ts. What is here already keeps its two texts, joined; they are still read.
alter table checkpoints add column record text;
update checkpoints set record = body || E'\x1d' || channels;
alter table checkpoints alter column record set not null, drop column body, drop column channels;

-- A third of the bytes of all indexes of checkpoints. Only a rollback and a second attempt look for the checkpoints of
-- a run: they scan those of its thread, by the primary key.
drop index checkpoints_by_run;
