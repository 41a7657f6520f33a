/**
 * Repositories and the key rotation read these declarations. A value that the database copies into another row keeps
 * the place of its first row.
 */

import { toJsonb } from "../lib/jsonb.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Cipher, Places } from "./cipher.ts";
import {
  decryptJson,
  decryptKnownJson,
  decryptUndamagedJson,
  encryptConfig,
  encryptEach,
  encryptJson,
  EncryptedJson,
  encryptMetadata,
  encryptSome,
} from "./json.ts";

/** `Key`: the ids of the row. `Value`: an object, or JSON text if no code reads the value. */
export interface JsonColumn<Key, Value> {
  /** The row's own place first, then those of rows from which the database copies values. */
  places(key: Key): Places;
  encrypted(cipher: Cipher, value: Value, key: Key): string;
  stored(cipher: Cipher | undefined, value: Value, key: Key): string;
  /**
   * Encrypts again with the newest key. `from`: the row that the database copied the text from.
   * Throws an `EncryptionError` if the text can't be decrypted; for columns that stand open, only if the key is
   * missing.
   */
  reencrypted(cipher: Cipher, text: string, key: Key, from?: Key): string;
}

interface Kind<Value> {
  parse(json: string): Value;
  plain(value: Value): string;
  encrypt(cipher: Cipher, value: Value, place: string): string;
  /** Callers choose the content, so a text that looks encrypted may be their own. */
  standsOpen?: boolean;
}

const ofObject = (
  encrypt: (cipher: Cipher, value: JsonObject, place: string) => JsonObject,
): Kind<JsonObject> => ({
  parse: (json) => JSON.parse(json) as JsonObject,
  plain: (value) => JSON.stringify(value),
  encrypt: (cipher, value, place) => JSON.stringify(encrypt(cipher, value, place)),
});

const METADATA = { ...ofObject(encryptMetadata), standsOpen: true };
const CONFIG = ofObject((cipher, config, place) => encryptConfig(cipher, config, { place }));
/** The database compares this column with values of requests. */
const COMPARED_CONFIG = ofObject((cipher, config, place) =>
  encryptConfig(cipher, config, { place, alike: true }),
);
const CONTEXT = ofObject((cipher, context, place) => encryptEach(cipher, context, { place }));

const WHOLE: Kind<string> = {
  parse: (json) => json,
  plain: (json) => toJsonb(json).jsonb,
  encrypt: encryptJson,
};
/** `{}` stands for no interrupts, and the database compares with it. */
const INTERRUPTS: Kind<string> = {
  ...WHOLE,
  encrypt: (cipher, json, place) => (json === "{}" ? json : encryptJson(cipher, json, place)),
};

/** The members with user data. */
export const ENCRYPTED_KWARGS = ["input", "command", "webhook", "feedback_keys", "headers"] as const;
const KWARGS: Kind<string> = {
  ...WHOLE,
  plain: (json) => json,
  encrypt: (cipher, json, place) =>
    JSON.stringify(encryptSome(cipher, JSON.parse(json) as JsonObject, ENCRYPTED_KWARGS, place)),
};

const column = <Key, Value>(kind: Kind<Value>, places: (key: Key) => Places): JsonColumn<Key, Value> => {
  const encrypted = (cipher: Cipher, value: Value, key: Key): string =>
    kind.encrypt(cipher, value, places(key)[0]);
  const open = kind.standsOpen === true ? decryptKnownJson : decryptUndamagedJson;
  return {
    places,
    encrypted,
    stored: (cipher, value, key) =>
      cipher === undefined ? kind.plain(value) : encrypted(cipher, value, key),
    reencrypted(cipher, text, key, from) {
      const former = from === undefined ? [] : places(from);
      return encrypted(cipher, kind.parse(open(cipher, text, [...places(key), ...former])), key);
    },
  };
};

/** PostgreSQL accepts ids in capitals, too. */
const placeOf = (table: string, name: string, id: string): string =>
  `json ${table} ${name} ${id.toLowerCase()}`;

export interface AssistantKey {
  assistant_id: string;
}
export interface ThreadKey {
  thread_id: string;
}
export interface RunKey extends AssistantKey, ThreadKey {
  run_id: string;
}

const ofAssistant =
  (name: string) =>
  ({ assistant_id: id }: AssistantKey) =>
    placeOf("assistants", name, id);
const ofThread =
  (name: string) =>
  ({ thread_id: id }: ThreadKey) =>
    placeOf("threads", name, id);
const ofRun =
  (name: string) =>
  ({ run_id: id }: Pick<RunKey, "run_id">) =>
    placeOf("runs", name, id);

/** The database copies values between assistants and their versions. */
export const ASSISTANT_JSON = {
  config: column(CONFIG, (key: AssistantKey) => [ofAssistant("config")(key)]),
  context: column(CONTEXT, (key: AssistantKey) => [ofAssistant("context")(key)]),
  metadata: column(METADATA, (key: AssistantKey) => [ofAssistant("metadata")(key)]),
} as const;

export const THREAD_JSON = {
  metadata: column(METADATA, (key: ThreadKey) => [ofThread("metadata")(key)]),
  config: column(COMPARED_CONFIG, (key: ThreadKey) => [ofThread("config")(key)]),
  interrupts: column(INTERRUPTS, (key: ThreadKey) => [ofThread("interrupts")(key)]),
  error: column(WHOLE, (key: ThreadKey) => [ofThread("error")(key)]),
} as const;

/** The database merges the values of the run's assistant and thread under those of the request. */
export const RUN_JSON = {
  metadata: column(METADATA, (key: RunKey) => [
    ofRun("metadata")(key),
    ofThread("metadata")(key),
    ofAssistant("metadata")(key),
  ]),
  config: column(CONFIG, (key: RunKey) => [
    ofRun("config")(key),
    ofThread("config")(key),
    ofAssistant("config")(key),
  ]),
  context: column(CONTEXT, (key: RunKey) => [
    ofRun("context")(key),
    ofThread("config")(key),
    ofAssistant("context")(key),
  ]),
  kwargs: column(KWARGS, (key: Pick<RunKey, "run_id">) => [ofRun("kwargs")(key)]),
  error: column(WHOLE, (key: Pick<RunKey, "run_id">) => [ofRun("error")(key)]),
  auth_user: column(WHOLE, (key: Pick<RunKey, "run_id">) => [ofRun("auth_user")(key)]),
} as const;

/** A delivery copies its run. A delivery of a thread's end has the error that was encrypted for the thread. */
export const DELIVERY_JSON = {
  metadata: RUN_JSON.metadata,
  config: RUN_JSON.config,
  context: RUN_JSON.context,
  kwargs: RUN_JSON.kwargs,
  error: column(WHOLE, (key: RunKey) => [ofRun("error")(key), ofThread("error")(key)]),
} as const;

/** Values that a run took from its thread's row, to restore them there. */
export const REPLACED_JSON = {
  replaced_metadata: THREAD_JSON.metadata,
  replaced_config: THREAD_JSON.config,
} as const;

export interface CronKey {
  cron_id: string;
}
export const CRON_JSON = {
  metadata: column(METADATA, ({ cron_id: id }: CronKey) => [placeOf("crons", "metadata", id)]),
  auth_user: column(WHOLE, ({ cron_id: id }: CronKey) => [placeOf("crons", "auth_user", id)]),
} as const;

export interface ItemKey {
  namespace: readonly string[];
  key: string;
}
export const ITEM_JSON = {
  value: column(WHOLE, ({ namespace, key }: ItemKey) => [
    `json store_items value ${JSON.stringify([namespace, key])}`,
  ]),
} as const;

/** Copies of a thread share checkpoint ids: see rows/encryption.ts of the checkpoints. */
export interface CheckpointKey {
  checkpoint_ns: string;
  checkpoint_id: string;
}
export const CHECKPOINT_JSON = {
  metadata: column(METADATA, ({ checkpoint_ns: namespace, checkpoint_id: id }: CheckpointKey) => [
    `${placeOf("checkpoints", "metadata", id)} ${namespace}`,
  ]),
} as const;

type JsonColumns<Key> = Readonly<Record<string, Pick<JsonColumn<Key, never>, "places">>>;

/** Returns the row as it is without a cipher. */
export const decryptColumns = <Key, Row extends object>(
  cipher: Cipher | undefined,
  columns: JsonColumns<Key>,
  key: Key,
  row: Row,
): Row => {
  if (cipher === undefined) return row;
  const decrypted = Object.entries(columns).flatMap(([name, { places }]) => {
    const value = (row as Record<string, unknown>)[name];
    return value instanceof EncryptedJson
      ? [[name, JSON.parse(decryptJson(cipher, value.text, places(key))) as unknown]]
      : [];
  });
  return decrypted.length === 0 ? row : { ...row, ...(Object.fromEntries(decrypted) as Partial<Row>) };
};

export const decryptRow = <Key, Row extends Key & object>(
  cipher: Cipher | undefined,
  columns: JsonColumns<Key>,
  row: Row,
): Row => decryptColumns<Key, Row>(cipher, columns, row, row);

export const decryptRows = <Key, Row extends Key & object>(
  cipher: Cipher | undefined,
  columns: JsonColumns<Key>,
  rows: Row[],
): Row[] => (cipher === undefined ? rows : rows.map((row) => decryptRow(cipher, columns, row)));
