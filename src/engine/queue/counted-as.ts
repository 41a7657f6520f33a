import { callerName, type Caller } from "../../access/caller.ts";
import type { Encryption } from "../../platform/database/database.ts";

const KEY = "key:";
const USER = "user:";

/** Any other name is returned as it is. */
export const countedName = (encryption: Encryption, name: string): string => {
  const kind = [KEY, USER].find((prefix) => name.startsWith(prefix));
  return kind === undefined ? name : kind + encryption.digest(name);
};

/**
 * A caller's kind and a digest, which counts the caller's runs. With an encryption key the digest can't be
 * tested against guessed names. Null: not counted.
 */
export const countedAs = (encryption: Encryption, caller: Caller): string | null => {
  const name = callerName(caller);
  return name === undefined ? null : countedName(encryption, name);
};

/** So that log lines name a user consistently. */
export const userDigest = (encryption: Encryption, identity: string): string =>
  encryption.digest(USER + identity);

/**
 * What `countedAs` may have returned for a user, with each key and without a key; empty for other callers.
 */
export const userCountedAs = (encryption: Encryption, caller: Caller): string[] => {
  const name = callerName(caller);
  if (name === undefined || caller.kind !== "user") return [];
  return encryption.digests(name).map((digest) => USER + digest);
};

/** A user counts once; an API key stands for an application with many users. */
export const isUser = (counted: string): boolean => counted.startsWith(USER);
