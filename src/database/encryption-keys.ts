import { StartError } from "../domain/errors.ts";
import type { Cipher } from "../encryption/cipher.ts";
import type { Logger } from "../lib/logger.ts";
import { startPeriodic } from "../lib/periodic.ts";
import type { Queryable } from "./database.ts";
import { isPassing } from "./passing-faults.ts";

const PROOF = "threadloom";
const placeOf = (keyId: string): string => `proof ${keyId}`;

/** The ids of all keys that something may be sealed with, the oldest first. */
export const listEncryptionKeys = async (database: Queryable): Promise<string[]> =>
  (
    await database.query<{ key_id: string }>(
      "select key_id from threadloom.encryption_keys order by created_at, key_id",
    )
  ).map((row) => row.key_id);

/** From now on a start needs this key no more. Nothing may be sealed with it. */
export const forgetEncryptionKey = async (database: Queryable, keyId: string): Promise<void> => {
  await database.query("delete from threadloom.encryption_keys where key_id = $1", [keyId]);
};

/**
 * Refuses a start without a key that something in the database may be sealed with, and notes the key that seals from now on.
 * Throws StartError.
 */
export const assertEncryptionKeys = async (database: Queryable): Promise<void> => {
  const { cipher } = database;
  const rows = await database.query<{ key_id: string; proof: string }>(
    "select key_id, proof from threadloom.encryption_keys order by created_at",
  );
  for (const { key_id: keyId, proof } of rows) {
    if (cipher?.keyIds.includes(keyId) !== true) {
      throw new StartError(
        `Refusing to start: this database holds what is encrypted with the key '${keyId}', ` +
          (cipher === undefined
            ? "and no key is set: LANGGRAPH_AES_KEY is missing or empty. Set it to this key."
            : `which is not among those of LANGGRAPH_AES_KEY (${cipher.keyIds.join(", ")}). Add it behind the key that is to ` +
              "encrypt from now on."),
      );
    }
    try {
      cipher.open(proof, placeOf(keyId));
    } catch (error) {
      throw new StartError(
        `Refusing to start: the key '${keyId}' of LANGGRAPH_AES_KEY does not open what it should have encrypted.`,
        { cause: error },
      );
    }
  }
  if (cipher === undefined || rows.some(({ key_id: keyId }) => keyId === cipher.keyId)) return;
  await noteKey(database, cipher);
};

/** False if it was noted before. Index: encryption_keys_pkey. */
const noteKey = async (database: Queryable, cipher: Cipher): Promise<boolean> => {
  const noted = await database.query(
    "insert into threadloom.encryption_keys (key_id, proof) values ($1, $2) on conflict do nothing returning key_id",
    [cipher.keyId, cipher.seal(PROOF, placeOf(cipher.keyId))],
  );
  return noted.length > 0;
};

const NOTED_EVERY_MS = 5_000;

/**
 * Notes the key that this process seals with again if it was forgotten meanwhile: what it has stored since needs the key, so a
 * start without it has to be refused.
 */
export const keepKeyNoted = (database: Queryable, logger: Logger): { close(): Promise<void> } | undefined => {
  const { cipher } = database;
  if (cipher === undefined) return undefined;
  return startPeriodic({
    everyMs: NOTED_EVERY_MS,
    async work() {
      if (await noteKey(database, cipher))
        logger.warn(
          { key_id: cipher.keyId },
          "the encryption key was forgotten while this server encrypts with it; it is needed again: reseal and forget when no server has it in front",
        );
    },
    onError(error) {
      if (isPassing(error)) logger.debug({ err: error }, "the database can't be told of the encryption key");
      else logger.error({ err: error }, "the look whether the encryption key is noted failed");
    },
  });
};
