-- Grows with each change of a thread's row. An update of a state stores what it made of the state that it read only if
-- nothing has changed since. It was told by xmin, which names a transaction of one PostgreSQL and is no column elsewhere.
alter table threads add column version bigint not null default 0;

-- Statements that change what a state is made of count for themselves, without the call of a function. This is for all
-- others, and for a server of the version before, which may still run beside this one and doesn't know the column.
create function count_thread_version() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;
create trigger threads_version before update on threads for each row
  when (new.version = old.version) execute function count_thread_version();
