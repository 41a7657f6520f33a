-- Who created a run or a cron, where that is a user of the project's own `Auth`: what the graph is told of them. Null for all
-- others. No answer of the API has it. A server of before leaves it null, and so its graphs see no user.
alter table runs add column auth_user jsonb;
alter table crons add column auth_user jsonb;
