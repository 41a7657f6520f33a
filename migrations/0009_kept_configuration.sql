-- What creating the run replaced of its thread's config, where it keeps what runs were given. A rollback puts it back.
-- Null if the run was given nothing that the thread had not kept before.
alter table runs add column replaced_config jsonb;
