import { createHash } from "node:crypto";
import { callerName, type Caller } from "../../access/caller.ts";
import type { Cipher } from "../../platform/encryption/cipher.ts";

const KEY = "key:";
const USER = "user:";
/** 128 bits. */
const DIGEST_CHARACTERS = 32;

const plainDigestOf = (name: string): string =>
  createHash("sha256").update(name).digest("hex").slice(0, DIGEST_CHARACTERS);

/** Any other name is returned as it is. */
export const countedName = (cipher: Cipher | undefined, name: string): string => {
  const kind = [KEY, USER].find((prefix) => name.startsWith(prefix));
  return kind === undefined ? name : kind + (cipher?.digest(name) ?? plainDigestOf(name));
};

/**
 * A caller's kind and a digest, which counts the caller's runs. With an encryption key the digest can't be
 * tested against guessed names. Null: not counted.
 */
export const countedAs = (cipher: Cipher | undefined, caller: Caller): string | null => {
  const name = callerName(caller);
  return name === undefined ? null : countedName(cipher, name);
};

/** So that log lines name a user consistently. */
export const userDigest = (cipher: Cipher, identity: string): string => cipher.digest(USER + identity);

/**
 * What `countedAs` may have returned for a user, with each key and without a key; empty for other callers.
 */
export const userCountedAs = (cipher: Cipher | undefined, caller: Caller): string[] => {
  const name = callerName(caller);
  if (name === undefined || caller.kind !== "user") return [];
  return [plainDigestOf(name), ...(cipher?.digests(name) ?? [])].map((digest) => USER + digest);
};

/** A user counts once; an API key stands for an application with many users. */
export const isUser = (counted: string): boolean => counted.startsWith(USER);
