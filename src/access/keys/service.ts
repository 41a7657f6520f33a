import {
  apiKeyNotFound,
  conflict,
  invalid,
  sqlState,
  UNIQUE_VIOLATION,
} from "../../platform/domain/errors.ts";
import type { KeyScope } from "../caller.ts";
import { hashOf, idOf, isKeyText, makeKey } from "./key-text.ts";
import { KEYS_AT_MOST, type KeyRecord, type KeyRepository } from "./repository.ts";

/** An operator's commands for keys. They check no caller, because the operator has access to the database. */
export interface KeyService {
  /** Returns `key` only once. Rejects with `invalid`, or with `conflict` if an unrevoked key has the name. */
  create(wish: KeyWish): Promise<{ key: string; record: KeyRecord }>;
  list(options: { withRevoked: boolean }): Promise<KeyRecord[]>;
  /** `reference`: an id, a name or a key. Rejects with `not_found`, or `conflict` if already revoked. */
  revoke(reference: string): Promise<KeyRecord>;
  /**
   * Deletes all keys, which opens a server without other access control. Rejects with `conflict` unless all are
   * revoked.
   */
  forget(): Promise<number>;
}

interface KeyWish {
  name: string;
  scopes: readonly KeyScope[];
  /** Undefined: never expires. */
  expiresInSeconds: number | undefined;
}

const NAME_CHARACTERS_AT_MOST = 100;
/** A name must not look like a key's id. */
const LIKE_AN_ID = /^[0-9a-f]{12}$/;
/** Keeps the expiry below the end of PostgreSQL's timestamps. */
const EXPIRY_SECONDS_AT_MOST = 100 * 365 * 86_400;

const assertName = (name: string): void => {
  if (name === "" || name.length > NAME_CHARACTERS_AT_MOST || name !== name.trim() || /\p{C}/u.test(name)) {
    throw invalid(
      `A name has 1 to ${NAME_CHARACTERS_AT_MOST} characters, none of them invisible, and no space around it.`,
    );
  }
  if (LIKE_AN_ID.test(name) || isKeyText(name)) throw invalid("A name must not look like a key or its id.");
};

export const createKeyService = (repository: Omit<KeyRepository, "readSince" | "recordUse">): KeyService => ({
  async create({ name, scopes, expiresInSeconds }) {
    assertName(name);
    if (scopes.length === 0) throw invalid("A key needs a scope: read, run or admin.");
    if (expiresInSeconds !== undefined && !(expiresInSeconds > 0)) {
      throw invalid("A key can't have expired already.");
    }
    if (expiresInSeconds !== undefined && expiresInSeconds > EXPIRY_SECONDS_AT_MOST) {
      throw invalid("A key expires within 100 years, or never.");
    }
    const key = makeKey();
    const keyHash = hashOf(key);
    const fields = { keyId: idOf(keyHash), keyHash, name, scopes: [...new Set(scopes)], expiresInSeconds };
    try {
      const record = await repository.insert(fields);
      if (record === undefined) throw conflict(`There are ${KEYS_AT_MOST} keys already: revoke some first.`);
      return { key, record };
    } catch (error) {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      throw conflict(`There is a key '${name}' already: revoke it first, or choose another name.`, error);
    }
  },
  list: (options) => repository.list(options),
  async revoke(reference) {
    // A leaked key may be given, because its id may be unknown. The error does not repeat the key.
    const isKey = isKeyText(reference);
    const found = await repository.find(isKey ? idOf(hashOf(reference)) : reference);
    if (found === undefined) throw apiKeyNotFound(isKey ? "that is given" : `'${reference}'`);
    const revoked = await repository.revoke(found.key_id);
    if (revoked === undefined)
      throw conflict(`The key '${found.name}' (${found.key_id}) is revoked already.`);
    return revoked;
  },
  async forget() {
    const forgotten = await repository.forgetRevoked();
    if (forgotten === undefined) throw conflict("Some keys are not revoked: revoke them first.");
    return forgotten;
  },
});
