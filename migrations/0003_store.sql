-- The store: JSON values under hierarchical namespaces, shared by all threads.

create table store_items (
  -- Compared by bytes, label by label. So the smallest array behind everything that begins with {a, b} is
  -- {a, b || chr(1)}, and "all that begins with {a, b}" is one exact range of the primary key. A column with
  -- joined labels and LIKE would need escaping, and would take {ab} for a child of {a}.
  namespace   text[] collate "C" not null check (cardinality(namespace) > 0),
  key         text collate "C" not null,
  value       jsonb not null,
  ttl_minutes double precision check (ttl_minutes > 0),   -- what a refresh adds anew
  expires_at  timestamptz,                                -- invisible from then on, removed by the sweep later
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (namespace, key),
  check ((ttl_minutes is null) = (expires_at is null))
);
create index store_items_by_expiry on store_items (expires_at) where expires_at is not null;
create index store_items_by_update on store_items (updated_at);

-- A value as the operators $gt, $gte, $lt and $lte see it, which is as JavaScript's Number() does: text that
-- spells a decimal number counts as that number, true as 1, false and null as 0; null for anything else.
-- The bounds on length and exponent keep the cast from ever failing: one odd item must not break a search.
create function store_number(value jsonb) returns numeric
  language sql immutable parallel safe
  as $$
    select case jsonb_typeof(value)
      when 'number' then (value #>> '{}')::numeric
      when 'boolean' then case when value = 'true' then 1 else 0 end
      when 'null' then 0
      when 'string' then
        case
          when length(value #>> '{}') > 300 then null
          when btrim(value #>> '{}', E' \t\n\r') = '' then 0
          when btrim(value #>> '{}', E' \t\n\r') ~ '^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$'
            then btrim(value #>> '{}', E' \t\n\r')::numeric
        end
    end
  $$;
