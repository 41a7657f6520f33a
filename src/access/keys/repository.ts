import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { ApiKeyRow } from "../../platform/database/tables.ts";
import type { KeyScope } from "../caller.ts";

/** The key itself is not stored. */
export type KeyRecord = Omit<ApiKeyRow, "key_hash"> & {
  /** By the database's clock. */
  status: "active" | "expired" | "revoked";
};

interface NewKey {
  keyId: string;
  keyHash: Buffer;
  name: string;
  scopes: readonly KeyScope[];
  /** Undefined: never expires. */
  expiresInSeconds: number | undefined;
}

/** An unrevoked key. */
export interface UsableKey {
  id: string;
  /** SHA-256, hexadecimal. */
  hash: string;
  /** May hold scopes that only newer versions know. */
  scopes: string[];
  /** Null: never expires. Negative: expired. */
  expiresInSeconds: number | null;
}

export interface KeysAsStored {
  version: number;
  /** Null if nothing changed since the given version. */
  usable: UsableKey[] | null;
  /** Whether the table holds a key, even a revoked one. Null if nothing changed. */
  any: boolean | null;
}

/** Without this bound, a dead connection would block the reads of keys. */
const ANSWER_MS = 2_000;

/** Limit of unrevoked keys, because each server holds them in memory (a few hundred bytes each). */
export const KEYS_AT_MOST = 10_000;

const STATUS = `case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'active' end`;
const RECORD = `key_id, name, scopes, expires_at, created_at, last_used_at, revoked_at, ${STATUS} as status`;

const INSERT = statement(
  {
    keyId: "text",
    keyHash: "bytea",
    name: "text",
    scopes: "text[]",
    expiresInSeconds: "float8",
  },
  (sql) => `insert into threadloom.api_keys (key_id, key_hash, name, scopes, expires_at)
  select ${sql.keyId}, ${sql.keyHash}, ${sql.name}, ${sql.scopes}, now() + make_interval(secs => ${sql.expiresInSeconds})
  where (select count(*) from threadloom.api_keys where revoked_at is null) < ${KEYS_AT_MOST}
  returning ${RECORD}`,
);

const LIST = statement(
  { withRevoked: "boolean" },
  (sql) => `select ${RECORD} from threadloom.api_keys
  where ${sql.withRevoked} or revoked_at is null order by created_at, key_id`,
);

const FIND = statement(
  { reference: "text" },
  (sql) => `select ${RECORD} from threadloom.api_keys
  where key_id = ${sql.reference} or (name = ${sql.reference} and revoked_at is null)
  order by key_id = ${sql.reference} desc limit 1`,
);

const REVOKE = statement(
  { keyId: "text" },
  (sql) => `update threadloom.api_keys set revoked_at = now()
  where key_id = ${sql.keyId} and revoked_at is null returning ${RECORD}`,
);

const FORGET_REVOKED = `with in_use as (select exists (select from threadloom.api_keys where revoked_at is null) as yes),
  deleted as (delete from threadloom.api_keys where not (select yes from in_use) returning 1)
select yes as "inUse", (select count(*)::int from deleted) as deleted from in_use`;

const READ_SINCE = statement(
  { version: "bigint" },
  (sql) => `select version::float8 as version,
    case when version <> ${sql.version} then (
      select coalesce(json_agg(json_build_object('id', key_id, 'hash', encode(key_hash, 'hex'), 'scopes', scopes,
        'expiresInSeconds', extract(epoch from expires_at - clock_timestamp()))), '[]')
      from threadloom.api_keys where revoked_at is null) end as usable,
    case when version <> ${sql.version} then exists (select from threadloom.api_keys) end as "any"
  from threadloom.api_key_changes`,
);

const RECORD_USE = statement(
  { ids: "text[]", secondsAgo: "float8[]", everySeconds: "float8" },
  (sql) => `update threadloom.api_keys key set last_used_at = used.at
  from (select id, now() - make_interval(secs => ago) as at
        from unnest(${sql.ids}, ${sql.secondsAgo}) as given (id, ago)) used
  where key.key_id = used.id
    and (key.last_used_at is null or key.last_used_at < used.at - make_interval(secs => ${sql.everySeconds}))`,
);

/** Uses the database's clock, because the clocks of processes differ. */
export const createKeyRepository = (database: Pick<Database, "query">) => ({
  /** Undefined if there are too many keys. Rejects with `UNIQUE_VIOLATION` if the name is taken. */
  async insert(key: NewKey): Promise<KeyRecord | undefined> {
    return (await INSERT.query<KeyRecord>(database, key))[0];
  },

  /** Oldest first. */
  list: (which: { withRevoked: boolean }): Promise<KeyRecord[]> => LIST.query<KeyRecord>(database, which),

  /** The key with this id, else the unrevoked key with this name. */
  async find(reference: string): Promise<KeyRecord | undefined> {
    return (await FIND.query<KeyRecord>(database, { reference }))[0];
  },

  /** Undefined if the key is already revoked. */
  async revoke(keyId: string): Promise<KeyRecord | undefined> {
    return (await REVOKE.query<KeyRecord>(database, { keyId }))[0];
  },

  /** Deletes all keys if all are revoked, and returns their number; otherwise undefined. */
  async forgetRevoked(): Promise<number | undefined> {
    const [row] = await database.query<{ inUse: boolean; deleted: number }>(FORGET_REVOKED);
    return row === undefined || row.inUse ? undefined : row.deleted;
  },

  /** Reads one row (0.1 ms) unless a key changed. `version` 0 reads everything. */
  async readSince(version: number): Promise<KeysAsStored> {
    const { text, values } = READ_SINCE.compile({ version });
    const [row] = await database.query<KeysAsStored>(text, values, { answerMs: ANSWER_MS });
    if (row === undefined) throw new Error("The table api_key_changes has no row.");
    return row;
  },

  /** Stores the last use of keys, each at most once in `everySeconds` across all servers. */
  async recordUse(used: readonly { id: string; secondsAgo: number }[], everySeconds: number): Promise<void> {
    await RECORD_USE.query(database, {
      ids: used.map(({ id }) => id),
      secondsAgo: used.map(({ secondsAgo }) => secondsAgo),
      everySeconds,
    });
  },
});

export type KeyRepository = ReturnType<typeof createKeyRepository>;
