import { StartError } from "../domain/errors.ts";
import type { Queryable } from "./database.ts";

const PROOF = "threadloom";
const placeOf = (keyId: string): string => `proof ${keyId}`;

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
        `Refusing to start: this database holds what is encrypted with the key '${keyId}', which is not among those of ` +
          `LANGGRAPH_AES_KEY${cipher === undefined ? "" : ` (${cipher.keyIds.join(", ")})`}. Add it behind the key that is to ` +
          "encrypt from now on.",
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
  await database.query(
    "insert into threadloom.encryption_keys (key_id, proof) values ($1, $2) on conflict do nothing",
    [cipher.keyId, cipher.seal(PROOF, placeOf(cipher.keyId))],
  );
};
