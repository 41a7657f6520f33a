import { createHash } from "node:crypto";
import { callerName, type Caller } from "../../access/caller.ts";
import type { Cipher } from "../../platform/encryption/cipher.ts";

const KEY = "key:";
const USER = "user:";
/** 128 bits. */
const DIGEST_CHARACTERS = 32;

const plainDigestOf = (name: string): string =>
  createHash("sha256").update(name).digest("hex").slice(0, DIGEST_CHARACTERS);

/** A name of `callerName` as it stands in the database; any other name as it is. */
export const countedName = (cipher: Cipher | undefined, name: string): string => {
  const kind = [KEY, USER].find((prefix) => name.startsWith(prefix));
  return kind === undefined ? name : kind + (cipher?.digest(name) ?? plainDigestOf(name));
};

/**
 * What the runs of a caller are counted by, as it stands in the database: of what kind the caller is, and a digest. Whoever
 * has the database can't read the digest, nor try names against it, where the server has a key for encryption. Null: the
 * caller has no name, and is not counted.
 */
export const countedAs = (cipher: Cipher | undefined, caller: Caller): string | null => {
  const name = callerName(caller);
  return name === undefined ? null : countedName(cipher, name);
};

/** Of a user with this name, the digest in `countedAs`: for lines of the log, so that the same caller has one name in all. */
export const userDigest = (cipher: Cipher, identity: string): string => cipher.digest(USER + identity);

/**
 * All that `countedAs` may have answered for a user, with each of the keys and before there was one; empty for callers who are no
 * users.
 */
export const userCountedAs = (cipher: Cipher | undefined, caller: Caller): string[] => {
  const name = callerName(caller);
  if (name === undefined || caller.kind !== "user") return [];
  return [plainDigestOf(name), ...(cipher?.digests(name) ?? [])].map((digest) => USER + digest);
};

/** Whether `countedAs` was made of a user, who counts once; a key stands for an application with many. */
export const isUser = (counted: string): boolean => counted.startsWith(USER);
