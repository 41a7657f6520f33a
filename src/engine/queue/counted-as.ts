import { callerName, type Caller } from "../../access/caller.ts";
import type { Encryption } from "../../platform/database/database.ts";

const KEY = "key:";
const USER = "user:";

export const countedName = (encryption: Encryption, name: string): string => {
  const kind = [KEY, USER].find((prefix) => name.startsWith(prefix));
  return kind === undefined ? name : kind + encryption.digest(name);
};

/**
 * The name for which a caller's runs count: kind and digest. Null: not counted. With an encryption key, the
 * digest can't be tested against guessed names.
 */
export const countedAs = (encryption: Encryption, caller: Caller): string | null => {
  const name = callerName(caller);
  return name === undefined ? null : countedName(encryption, name);
};

/** Gives a user the same name in all log lines. */
export const userDigest = (encryption: Encryption, identity: string): string =>
  encryption.digest(USER + identity);

/**
 * All names that `countedAs` may have returned for a user: with each key, and without a key. Empty for other
 * callers.
 */
export const userCountedAs = (encryption: Encryption, caller: Caller): string[] => {
  const name = callerName(caller);
  if (name === undefined || caller.kind !== "user") return [];
  return encryption.digests(name).map((digest) => USER + digest);
};

/** An API key stands for an application with many users. */
export const isUser = (counted: string): boolean => counted.startsWith(USER);
