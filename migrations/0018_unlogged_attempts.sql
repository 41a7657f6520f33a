-- The attempt of which a reader on another process would have had events that the log does not have: see src/events/README.md.
alter table runs add column unlogged_attempt integer;
