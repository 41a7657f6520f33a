-- Runs that ended otherwise than well, over all threads, in the order of their ids: that is the order of their creation. A
-- run that was successful is never entered here.
create index runs_failed on runs (status, run_id) where status in ('error', 'timeout', 'interrupted');
