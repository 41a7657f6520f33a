-- Attempts that lost their worker, which is what MAX_ATTEMPTS counts. `attempt` can't tell: it also grows when a
-- worker that is stopped hands its runs back, and a long run may be handed back at each of many deployments.
alter table runs add column lost_attempts integer not null default 0;
-- Runs that are suspected of having killed their workers are claimed one at a time; there are hardly ever any.
create index runs_pending_suspects on runs (created_at, run_id) where status = 'pending' and lost_attempts > 0;
