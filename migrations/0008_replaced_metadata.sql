-- What creating the run replaced of its thread's metadata: `graph_id` and `assistant_id` as they were. A rollback puts
-- them back. Null, as nearly always, if the thread had those of the run already.
alter table runs add column replaced_metadata jsonb;
