-- Deleting an assistant waits for no cron that is being fired at this moment: its run waits for the assistant's row, and each
-- would have waited for the other. The one that is passed over is disabled when it is due.
create or replace function stop_crons_of_assistant() returns trigger language plpgsql as $$
begin
  execute format('update %1$I.crons set enabled = false, next_run_date = null, error = $1 where cron_id in (
      select cron_id from %1$I.crons where assistant_id = $2 for update skip locked)', tg_table_schema)
    using format('Assistant ''%s'' not found.', old.assistant_id), old.assistant_id;
  return old;
end
$$;
