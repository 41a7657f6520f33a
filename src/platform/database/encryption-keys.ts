import { StartError } from "../domain/errors.ts";
import type { Cipher } from "../encryption/cipher.ts";
import type { Logger } from "../lib/logger.ts";
import { startPeriodic } from "../lib/periodic.ts";
import type { Database, Queryable } from "./database.ts";
import { logFailure } from "./outages.ts";
import { statement } from "./statement.ts";

const PROOF = "threadloom";
const placeOf = (keyId: string): string => `proof ${keyId}`;

const NOTED_EVERY_MS = 5_000;
/** Much longer than NOTED_EVERY_MS. Data encrypted without a note can be lost with the key. */
const ENCRYPTS_SECONDS = 60;

/** Oldest first. */
export const listEncryptionKeys = async (database: Queryable): Promise<string[]> =>
  (
    await database.query<{ key_id: string }>(
      "select key_id from threadloom.encryption_keys order by created_at, key_id",
    )
  ).map((row) => row.key_id);

/** Index: none; a row for each server of the last day. */
const COUNT_SERVERS = statement(
  { keyId: "text", since: "timestamptz" },
  (sql) => `select count(*)::int as servers from threadloom.encrypting_servers
  where key_id = ${sql.keyId} and until > ${sql.since}`,
);

const assertNoServerEncrypts = async (database: Queryable, keyId: string, since: string): Promise<void> => {
  const [found] = await COUNT_SERVERS.query<{ servers: number }>(database, { keyId, since });
  const servers = found?.servers ?? 0;
  if (servers === 0) return;
  throw new StartError(
    `${servers} servers encrypt with the key '${keyId}', or did so until now. Put a newer key in front of it on every server, ` +
      `then 'rotate' and 'forget' again. A server that was killed counts for ${ENCRYPTS_SECONDS} s.`,
  );
};

const FORGET = statement(
  { keyId: "text" },
  (sql) => `delete from threadloom.encryption_keys where key_id = ${sql.keyId}`,
);

/**
 * `assertUnneeded` throws if a row needs the key. Throws StartError if a server encrypted with the key since the search
 * began.
 */
export const forgetEncryptionKey = async (
  database: Database,
  keyId: string,
  assertUnneeded: () => Promise<void>,
): Promise<void> => {
  const [clock] = await database.query<{ now: string }>("select now()::text as now");
  const since = clock?.now ?? "";
  await assertNoServerEncrypts(database, keyId, since);
  await assertUnneeded();
  await database.transaction(async (transaction) => {
    // A starting server notes itself before its key. Either this check sees the server, or the lock delays the note of
    // the key.
    await transaction.query("lock table threadloom.encryption_keys in exclusive mode");
    await assertNoServerEncrypts(transaction, keyId, since);
    await FORGET.query(transaction, { keyId });
  });
};

interface NotedKey {
  key_id: string;
  proof: string;
}

const NOTED = "select key_id, proof from threadloom.encryption_keys order by created_at";

/** Notes the encrypting key. Throws StartError for a missing or wrong key. */
export const assertEncryptionKeys = async (database: Queryable): Promise<void> => {
  const { cipher } = database.encryption;
  const noted = await database.query<NotedKey>(NOTED);
  for (const { key_id: keyId, proof } of noted) {
    if (cipher?.keyIds.includes(keyId) !== true) {
      throw new StartError(
        `Refusing to start: this database holds values encrypted with the key '${keyId}', ` +
          (cipher === undefined
            ? "and no key is set: LANGGRAPH_AES_KEY is missing or empty. Set it to this key."
            : `which is not among those of LANGGRAPH_AES_KEY (${cipher.keyIds.join(", ")}). Add it behind the key that is to ` +
              "encrypt from now on."),
      );
    }
    try {
      cipher.decrypt(proof, placeOf(keyId));
    } catch (error) {
      throw new StartError(
        `Refusing to start: the key '${keyId}' of LANGGRAPH_AES_KEY does not decrypt the values that it should have encrypted.`,
        { cause: error },
      );
    }
  }
  if (cipher !== undefined) await noteKey(database, cipher);
};

/** Index: encryption_keys_pkey. */
const NOTE_KEY = statement(
  { keyId: "text", proof: "text" },
  (sql) => `insert into threadloom.encryption_keys (key_id, proof) values (${sql.keyId}, ${sql.proof})
  on conflict do nothing returning key_id`,
);

/** False if the key was noted before. */
const noteKey = async (database: Queryable, { keyId, encrypt }: Cipher): Promise<boolean> =>
  (await NOTE_KEY.query(database, { keyId, proof: encrypt(PROOF, placeOf(keyId)) })).length > 0;

/** Index: encrypting_servers_pkey. Also deletes servers that stopped long ago. */
const NOTE_SERVER = statement(
  { serverId: "uuid", keyId: "text" },
  (sql) => `with gone as (delete from threadloom.encrypting_servers where until < now() - interval '1 day')
  insert into threadloom.encrypting_servers (server_id, key_id, until)
  values (${sql.serverId}, ${sql.keyId}, now() + make_interval(secs => ${ENCRYPTS_SECONDS}))
  on conflict (server_id) do update set until = excluded.until`,
);

const NOTE_STOP = statement(
  { serverId: "uuid" },
  (sql) => `update threadloom.encrypting_servers set until = now() where server_id = ${sql.serverId}`,
);

/** Keeps the key from being forgotten, and notes a forgotten key again. The server may encrypt after this resolves. */
export const keepKeyNoted = async (
  database: Queryable,
  serverId: string,
  logger: Logger,
): Promise<{ close(): Promise<void> } | undefined> => {
  const { cipher } = database.encryption;
  if (cipher === undefined) return undefined;
  const note = async (): Promise<boolean> => {
    await NOTE_SERVER.query(database, { serverId, keyId: cipher.keyId });
    return await noteKey(database, cipher);
  };
  await note();
  const noting = startPeriodic({
    everyMs: NOTED_EVERY_MS,
    async work() {
      if (await note())
        logger.warn(
          { key_id: cipher.keyId },
          "the encryption key was forgotten while this server encrypts with it; it is needed again: rotate and forget when no server has it in front",
        );
    },
    onError: logFailure(logger, "the encryption key could not be recorded in the database"),
  });
  return {
    async close() {
      await noting.close();
      // The note expires by itself.
      await NOTE_STOP.query(database, { serverId }).catch(
        logFailure(logger, "the end of this server's encryption could not be recorded in the database"),
      );
    },
  };
};
