-- The keys that anything here was ever sealed with, see src/encryption/. None: nothing is sealed.
create table encryption_keys (
  key_id     text primary key,
  -- A text that everybody knows, sealed: a server that opens it has the right key.
  proof      text not null,
  created_at timestamptz not null default now()
);
