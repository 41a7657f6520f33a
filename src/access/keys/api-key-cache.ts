import { timingSafeEqual } from "node:crypto";
import { unavailable } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { Caller, KeyScope } from "../caller.ts";
import { idOf } from "./key-text.ts";
import type { KeyRepository, UsableKey } from "./repository.ts";
import { isScope } from "./scopes.ts";

/**
 * Holds all keys of the table in memory, so requests and guessed keys cost no statement. New and revoked keys take
 * effect within `TRUSTED_MS`.
 */
export interface ApiKeyCache {
  /** Whether the table holds a key. A revoked key counts: revoking the last key must not open a server. */
  readonly isInUse: boolean;
  /** A promise only if the cache is stale. Rejects with `unavailable`. */
  find(hash: Buffer): KeyCaller | undefined | Promise<KeyCaller | undefined>;
  /** Whether a caller's key is neither revoked nor expired, as of the last reading. */
  holds(caller: KeyCaller): boolean;
  close(): Promise<void>;
}

export type KeyCaller = Extract<Caller, { kind: "key" }>;

interface ApiKeyCacheOptions {
  repository: Pick<KeyRepository, "readSince" | "recordUse">;
  logger: Logger;
}

/** Polled, because notifications may be lost and some databases lack LISTEN. */
const READ_EVERY_MS = 750;
/** Guarantees "refused within a second", even after a blocked event loop or a database outage. */
const TRUSTED_MS = 900;
const NOTE_EVERY_MS = 60_000;

interface Entry {
  hash: Buffer;
  caller: KeyCaller;
  /** By this process's `performance.now()`. */
  expiresAtMs: number;
}

const entryOf = ({ id, hash, scopes, expiresInSeconds }: UsableKey, readAtMs: number): Entry => ({
  hash: Buffer.from(hash, "hex"),
  caller: Object.freeze({
    kind: "key",
    id,
    // Ignore scopes of newer versions.
    scopes: Object.freeze(scopes.filter((scope): scope is KeyScope => isScope(scope))),
  }),
  expiresAtMs: expiresInSeconds === null ? Infinity : readAtMs + expiresInSeconds * 1_000,
});

/** Reads the keys before it resolves. Rejects if the database is unavailable. */
export const openApiKeyCache = async ({ repository, logger }: ApiKeyCacheOptions): Promise<ApiKeyCache> => {
  let version = 0;
  let entries = new Map<string, Entry>();
  let isInUse = false;
  /** The start of the last successful reading. */
  let readAtMs = -Infinity;
  let reading: Promise<void> | undefined;
  const usedAtMs = new Map<string, number>();

  const readOnce = async (): Promise<void> => {
    const begunAtMs = performance.now();
    const stored = await repository.readSince(version);
    if (stored.usable !== null) {
      entries = new Map(stored.usable.map((key) => [key.id, entryOf(key, begunAtMs)]));
      isInUse = stored.any === true;
      version = stored.version;
    }
    readAtMs = begunAtMs;
  };
  const read = (): Promise<void> =>
    (reading ??= readOnce().finally(() => {
      reading = undefined;
    }));

  const noteUse = async (): Promise<void> => {
    if (usedAtMs.size === 0) return;
    const now = performance.now();
    const used = [...usedAtMs].map(([id, at]) => ({ id, secondsAgo: (now - at) / 1_000 }));
    // Sorted, so that two servers updating the same keys cannot deadlock.
    used.sort((one, other) => (one.id < other.id ? -1 : 1));
    await repository.recordUse(used, NOTE_EVERY_MS / 1_000);
    for (const [id, at] of usedAtMs) if (at <= now) usedAtMs.delete(id);
  };

  const entryFor = (hash: Buffer): Entry | undefined => {
    const entry = entries.get(idOf(hash));
    if (entry === undefined || !timingSafeEqual(entry.hash, hash)) return undefined;
    return entry.expiresAtMs > performance.now() ? entry : undefined;
  };
  const findNow = (hash: Buffer): KeyCaller | undefined => {
    const entry = entryFor(hash);
    if (entry !== undefined) usedAtMs.set(entry.caller.id, performance.now());
    return entry?.caller;
  };
  const findFresh = async (hash: Buffer): Promise<KeyCaller | undefined> => {
    const oldestMs = performance.now() - TRUSTED_MS;
    try {
      // Waits for at most two readings: the first may be one that another caller started too long ago.
      while (readAtMs < oldestMs) await read();
    } catch (error) {
      throw unavailable("API keys can't be checked at the moment: the database can't be used.", error);
    }
    return findNow(hash);
  };

  await read();
  const readingAgain = startPeriodic({
    everyMs: READ_EVERY_MS,
    work: read,
    onError: (error) => logger.debug({ err: error }, "the API keys could not be read; trying again"),
  });
  const noting = startPeriodic({
    everyMs: NOTE_EVERY_MS,
    work: noteUse,
    onError: (error) => logger.debug({ err: error }, "the last use of API keys could not be noted yet"),
  });
  return {
    get isInUse() {
      return isInUse;
    },
    find: (hash) => (performance.now() - readAtMs <= TRUSTED_MS ? findNow(hash) : findFresh(hash)),
    holds({ id }) {
      const entry = entries.get(id);
      return entry !== undefined && entry.expiresAtMs > performance.now();
    },
    async close() {
      await readingAgain.close();
      await noting.close();
      await noteUse().catch((error: unknown) =>
        logger.debug({ err: error }, "the last use of API keys could not be noted"),
      );
    },
  };
};
