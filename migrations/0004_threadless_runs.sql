-- Threadless runs that have ended while another process was still reading them; a sweep removes them a little later.
create index runs_ended_threadless on runs (updated_at)
  where delete_thread and status not in ('pending', 'running');
