import { timingSafeEqual } from "node:crypto";
import { unavailable } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { Caller, KeyScope } from "../caller.ts";
import { idOf } from "./key-text.ts";
import type { KeyRepository, UsableKey } from "./repository.ts";
import { isScope } from "./scopes.ts";

/**
 * What a server knows of the keys in the table: all of them, in memory, read again when one has changed. So a request costs
 * no statement, and an unknown key costs nothing but its hash, however many are tried. What was read is `READ_EVERY_MS` old at
 * most, and never used for a key when it is older than `TRUSTED_MS`: that long a key is not known yet, or accepted still.
 */
export interface ApiKeyCache {
  /** Whether the table holds a key or held one. Revoking the last does not open a server. */
  readonly isInUse: boolean;
  /** The caller with a key of this hash. A promise where the database has to be asked; rejects with `unavailable`. */
  find(hash: Buffer): KeyCaller | undefined | Promise<KeyCaller | undefined>;
  /** Whether a caller that was found still has its key: it is neither revoked nor expired. As of the last reading. */
  holds(caller: KeyCaller): boolean;
  close(): Promise<void>;
}

export type KeyCaller = Extract<Caller, { kind: "key" }>;

export interface ApiKeyCacheOptions {
  repository: Pick<KeyRepository, "readSince" | "recordUse">;
  logger: Logger;
}

/** No signal is waited for: one may be lost, and a database without LISTEN has none. */
const READ_EVERY_MS = 400;
/** "Refused within a second": what is older does not count, whether the loop was blocked or the database is away. */
const TRUSTED_MS = 900;
/** Of noting the last use: a statement per minute, whatever comes in. */
const NOTE_EVERY_MS = 60_000;

interface Entry {
  hash: Buffer;
  caller: KeyCaller;
  /** By the clock of this process. */
  expiresAtMs: number;
}

const entryOf = ({ id, hash, scopes, expiresInSeconds }: UsableKey, readAtMs: number): Entry => ({
  hash: Buffer.from(hash, "hex"),
  caller: Object.freeze({
    kind: "key",
    id,
    // A scope of a newer version is none that this one could grant.
    scopes: Object.freeze(scopes.filter((scope): scope is KeyScope => isScope(scope))),
  }),
  expiresAtMs: expiresInSeconds === null ? Infinity : readAtMs + expiresInSeconds * 1_000,
});

/** Reads the keys, then resolves. Rejects if the database can't be asked. */
export const openApiKeyCache = async ({ repository, logger }: ApiKeyCacheOptions): Promise<ApiKeyCache> => {
  let version = 0;
  let entries = new Map<string, Entry>();
  let isInUse = false;
  /** When the last reading began that has succeeded. */
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
  /** One at a time, whoever asks. */
  const read = (): Promise<void> =>
    (reading ??= readOnce().finally(() => {
      reading = undefined;
    }));

  const noteUse = async (): Promise<void> => {
    if (usedAtMs.size === 0) return;
    const now = performance.now();
    const used = [...usedAtMs].map(([id, at]) => ({ id, secondsAgo: (now - at) / 1_000 }));
    // In the order of ids: two servers that note the same keys must not each wait for the other.
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
      // Twice at most: a reading may have begun long ago, the next one begins now.
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
