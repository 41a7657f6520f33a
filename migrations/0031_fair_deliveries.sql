-- By whom the run was counted (runs.caller), so that one caller's receivers do not take every place. Empty: nobody by name.
alter table webhook_deliveries add column caller text not null default '';
create index webhook_deliveries_due_of_caller on webhook_deliveries (caller, due_at) where state = 'pending';
-- Null: what the run was asked to do is too large to be told.
alter table webhook_deliveries alter column kwargs drop not null;
