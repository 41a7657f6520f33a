/**
 * The JSON columns that may hold sealed values: what of each is sealed, and in which row. Repositories and the rotation of keys
 * read these declarations. A value that the database copies into another row keeps the place where it was sealed.
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

/** `Key`: the ids that bind its values to a row. `Value`: an object, or JSON text where nothing looks into the value. */
export interface JsonColumn<Key, Value> {
  /** The row's own place, then those of rows from which the database copies values into it. */
  places(key: Key): Places;
  /** The JSON text to store. */
  encrypted(cipher: Cipher, value: Value, key: Key): string;
  /** The same where the database may have no cipher. */
  stored(cipher: Cipher | undefined, value: Value, key: Key): string;
  /**
   * What is stored, sealed with the newest key. `from`: the row that the database has copied it from. Throws an
   * `EncryptionError` for what can't be opened; where the column stands open, only for a missing key.
   */
  reencrypted(cipher: Cipher, text: string, key: Key, from?: Key): string;
}

/** What of a value is sealed. */
interface Kind<Value> {
  parse(json: string): Value;
  plain(value: Value): string;
  encrypt(cipher: Cipher, value: Value, place: string): string;
  /** Callers choose what stands in it, so what looks sealed and is not may be what somebody wrote. */
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
/** The database compares it with what a request gives. */
const COMPARED_CONFIG = ofObject((cipher, config, place) =>
  encryptConfig(cipher, config, { place, alike: true }),
);
const CONTEXT = ofObject((cipher, context, place) => encryptEach(cipher, context, { place }));

const WHOLE: Kind<string> = {
  parse: (json) => json,
  plain: (json) => toJsonb(json).jsonb,
  encrypt: encryptJson,
};
/** None are `{}`, which the database asks for. */
const INTERRUPTS: Kind<string> = {
  ...WHOLE,
  encrypt: (cipher, json, place) => (json === "{}" ? json : encryptJson(cipher, json, place)),
};

/** What of `kwargs` holds what users say; the rest says how to run. */
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

/** PostgreSQL takes an id in capitals, too. */
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

/** Of the rows of an assistant and of its versions: the database copies from one to the other. */
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

/** The values of a run's assistant and thread are merged under those of its request. */
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

/** A delivery is a copy of its run. What goes with its thread has ended with an error that was sealed for the thread. */
export const DELIVERY_JSON = {
  metadata: RUN_JSON.metadata,
  config: RUN_JSON.config,
  context: RUN_JSON.context,
  kwargs: RUN_JSON.kwargs,
  error: column(WHOLE, (key: RunKey) => [ofRun("error")(key), ofThread("error")(key)]),
} as const;

/** What a run took from its thread's row, to put it back there. */
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

/** Where the metadata of a checkpoint are sealed. A copy of a thread has checkpoints of the same ids: see rows/encryption.ts of the checkpoints. */
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

/** What was just read of the row `key`, its sealed values open. Without a cipher it is what was read. */
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

/** The same of a row that was read with its ids. */
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
