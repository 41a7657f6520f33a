-- What a page of records weighs, as far as it has room. PostgreSQL knows how many bytes a jsonb takes as text only when
-- it has written it, so that a page which weighed all that was asked for took as long as its writers liked. From where
-- the page is full nothing is looked at any more. See src/database/bounded-reads.ts.
create function add_weight(weight bigint, room bigint, octets bigint, a jsonb, b jsonb, c jsonb, d jsonb)
  returns bigint language plpgsql immutable parallel safe as $$
begin
  if weight >= room then
    return weight;
  end if;
  return weight + octets + coalesce(octet_length(a::text), 0) + coalesce(octet_length(b::text), 0)
    + coalesce(octet_length(c::text), 0) + coalesce(octet_length(d::text), 0);
end
$$;

create aggregate weight_within(room bigint, octets bigint, a jsonb, b jsonb, c jsonb, d jsonb)
  (sfunc = add_weight, stype = bigint, initcond = '0');
