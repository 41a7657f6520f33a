#!/bin/sh
# Run by the image of PostgreSQL when its volume is empty: makes the role that the server uses, which owns one schema and
# is no superuser (docs/database-role.md).
set -eu
psql --set ON_ERROR_STOP=1 --set password="$DATABASE_PASSWORD" \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
create role threadloom_user login password :'password' nosuperuser nocreatedb nocreaterole noinherit;
create schema threadloom authorization threadloom_user;
revoke create on schema public from public;
SQL
