-- API keys that `keys create` makes, beside those of the configuration. The keys themselves stand nowhere.
create table api_keys (
  -- The first 12 hexadecimal digits of the hash: names the key and does not reveal it.
  key_id       text primary key,
  key_hash     bytea not null check (length(key_hash) = 32),  -- SHA-256
  name         text not null,
  scopes       text[] not null check (cardinality(scopes) > 0),
  expires_at   timestamptz,                                   -- null: never
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,                                   -- a minute late at most; null: never used
  -- Revoked keys stay: they say that access to this deployment is controlled, though none be left.
  revoked_at   timestamptz
);
create unique index api_keys_by_name on api_keys (name) where revoked_at is null;

-- Counts the changes of the table but those of `last_used_at`: servers ask for this one row twice a second, and read the keys
-- only when it has changed. No sequence: the count has to be seen together with the change.
create table api_key_changes (
  one_row boolean primary key default true check (one_row),
  version bigint not null
);
insert into api_key_changes (version) values (1);

create function count_api_key_change() returns trigger language plpgsql as $$
begin
  execute format('update %I.api_key_changes set version = version + 1', tg_table_schema);
  return null;
end
$$;
create trigger api_keys_changes
  after insert or delete or truncate or update of key_hash, scopes, expires_at, revoked_at on api_keys
  for each statement execute function count_api_key_change();
