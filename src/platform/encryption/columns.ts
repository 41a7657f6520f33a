import { receiverDigest } from "../domain/webhook-address.ts";
import type { JsonObject } from "../lib/json.ts";
import { isEncrypted, openText, type Cipher, type Places } from "./cipher.ts";
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

/** `Key`: the ids of the row. `Stored`: the parameter of a statement. */
export interface EncryptedColumn<Key, Value, Stored = string> {
  readonly type: "json" | "jsonb" | "text" | "bytea";
  /** The place of the row comes first, then the places of the rows from which the database copies values. */
  places(key: Key): Places;
  /** Undefined: the column stores the value as it is. */
  plain: ((value: Value) => Stored) | undefined;
  encrypted(cipher: Cipher, value: Value, key: Key): Stored;
  /** `stored` comes from the driver. Undefined: only SQL reads the column. */
  decrypted?: (cipher: Cipher | undefined, stored: unknown, key: Key) => unknown;
  /**
   * Encrypts again with the newest key. `from` is the row that the database copied the text from; a column of bytes
   * takes and returns base64.
   * @throws EncryptionError if the text can't be decrypted; for metadata, only if the key is missing
   */
  reencrypted(cipher: Cipher, text: string, key: Key, from?: Key): string;
}

interface JsonKind<Value> {
  type: "json" | "jsonb";
  parse(json: string): Value;
  plain: ((value: Value) => string) | undefined;
  encrypt(cipher: Cipher, value: Value, place: string): string;
  /** A text that looks encrypted may be a caller's own. */
  mayHoldLookalikes?: boolean;
}

const ofObject = (
  type: "json" | "jsonb",
  encrypt: (cipher: Cipher, value: JsonObject, place: string) => JsonObject,
): JsonKind<JsonObject> => ({
  type,
  parse: (json) => JSON.parse(json) as JsonObject,
  plain: JSON.stringify,
  encrypt: (cipher, value, place) => JSON.stringify(encrypt(cipher, value, place)),
});

export const METADATA = { ...ofObject("jsonb", encryptMetadata), mayHoldLookalikes: true };
export const CONFIG = ofObject("json", (cipher, config, place) => encryptConfig(cipher, config, { place }));
/** The database compares this column with values of requests. */
export const COMPARED_CONFIG = ofObject("json", (cipher, config, place) =>
  encryptConfig(cipher, config, { place, alike: true }),
);
export const CONTEXT = ofObject("json", (cipher, context, place) => encryptEach(cipher, context, { place }));

export const WHOLE_JSON: JsonKind<string> = {
  type: "json",
  parse: (json) => json,
  plain: undefined,
  encrypt: encryptJson,
};
/** `{}` stands for no interrupts, and the database compares with it. */
export const INTERRUPTS: JsonKind<string> = {
  ...WHOLE_JSON,
  encrypt: (cipher, json, place) => (json === "{}" ? json : encryptJson(cipher, json, place)),
};

/** The members with user data. */
export const ENCRYPTED_KWARGS = [
  "input",
  "command",
  "webhook",
  "feedback_keys",
  "headers",
  "trace_context",
] as const;
export const KWARGS: JsonKind<string> = {
  ...WHOLE_JSON,
  encrypt: (cipher, json, place) =>
    JSON.stringify(encryptSome(cipher, JSON.parse(json) as JsonObject, ENCRYPTED_KWARGS, place)),
};

export const jsonColumn = <Key, Value>(
  { type, parse, plain, encrypt, mayHoldLookalikes = false }: JsonKind<Value>,
  places: (key: Key) => Places,
): EncryptedColumn<Key, Value> => ({
  type,
  places,
  plain,
  encrypted: (cipher, value, key) => encrypt(cipher, value, places(key)[0]),
  decrypted: (cipher, stored, key) =>
    cipher !== undefined && stored instanceof EncryptedJson
      ? (JSON.parse(decryptJson(cipher, stored.text, places(key))) as unknown)
      : stored,
  reencrypted(cipher, text, key, from) {
    const former = from === undefined ? [] : places(from);
    const decrypt = mayHoldLookalikes ? decryptKnownJson : decryptUndamagedJson;
    const own = places(key);
    return encrypt(cipher, parse(decrypt(cipher, text, [...own, ...former])), own[0]);
  },
});

export const textColumn = <Key>(placeOf: (key: Key) => string): EncryptedColumn<Key, string> => ({
  type: "text",
  places: (key) => [placeOf(key)],
  plain: undefined,
  encrypted: (cipher, text, key) => cipher.encrypt(text, placeOf(key)),
  decrypted: (cipher, stored, key) =>
    typeof stored === "string" && isEncrypted(stored) ? openText(cipher, stored, placeOf(key)) : stored,
  reencrypted(cipher, text, key) {
    const place = placeOf(key);
    return cipher.encrypt(cipher.decrypt(text, place), place);
  },
});

export const bytesColumn = <Key>(placeOf: (key: Key) => string): EncryptedColumn<Key, Buffer, Buffer> => {
  const encrypted = (cipher: Cipher, bytes: Buffer, key: Key): Buffer =>
    Buffer.from(cipher.encrypt(bytes.toString("utf8"), placeOf(key)));
  const decrypted = (cipher: Cipher | undefined, bytes: Buffer, key: Key): Buffer =>
    Buffer.from(openText(cipher, bytes.toString("utf8"), placeOf(key)));
  return {
    type: "bytea",
    places: (key) => [placeOf(key)],
    plain: undefined,
    encrypted,
    decrypted: (cipher, stored, key) =>
      cipher !== undefined && Buffer.isBuffer(stored) ? decrypted(cipher, stored, key) : stored,
    reencrypted: (cipher, text, key) =>
      encrypted(cipher, decrypted(cipher, Buffer.from(text, "base64"), key), key).toString("base64"),
  };
};

/**
 * Encrypts the address, because it may hold a token. The statement that ends the run needs the digest of the receiver
 * (engine/outbox/deliveries.ts).
 */
export const addressColumn = <Key>(placeOf: (key: Key) => string): EncryptedColumn<Key, string> => {
  const encrypted = (cipher: Cipher, address: string, place: string): string =>
    `${cipher.encrypt(address, place)} ${receiverDigest(cipher, address)}`;
  return {
    type: "text",
    places: (key) => [placeOf(key)],
    plain: undefined,
    encrypted: (cipher, address, key) => encrypted(cipher, address, placeOf(key)),
    reencrypted(cipher, text, key) {
      const place = placeOf(key);
      const address = isEncrypted(text) ? cipher.decrypt(text.split(" ", 1)[0] ?? "", place) : text;
      return encrypted(cipher, address, place);
    },
  };
};

/**
 * The kind of the values in each encrypted column, and the place that binds a value to its row. Never change a place:
 * stored values depend on it.
 */

export interface AssistantKey {
  assistant_id: string;
}
export interface ThreadKey {
  thread_id: string;
}
export interface RunIdKey {
  run_id: string;
}
export interface RunKey extends AssistantKey, ThreadKey, RunIdKey {}
export interface DeliveryKey {
  delivery_id: string;
}
export interface EventKey extends RunIdKey {
  seq: number;
}
export interface TracePartKey extends RunIdKey {
  attempt: number;
  part: number;
}
export interface CronKey {
  cron_id: string;
}
export interface ItemKey {
  namespace: readonly string[];
  key: string;
}
/** Copies of a thread share checkpoint ids, so that the database can copy encrypted rows. */
export interface CheckpointKey {
  checkpoint_ns: string;
  checkpoint_id: string;
}
export interface WriteKey extends CheckpointKey {
  task_id: string;
  index: string;
}

/** PostgreSQL also accepts ids in capitals. */
const placeOf = (table: string, name: string, id: string): string =>
  `json ${table} ${name} ${id.toLowerCase()}`;
const ofAssistant = (name: string, key: AssistantKey): string =>
  placeOf("assistants", name, key.assistant_id);
const ofThread = (name: string, key: ThreadKey): string => placeOf("threads", name, key.thread_id);
const ofRun = (name: string, key: RunIdKey): string => placeOf("runs", name, key.run_id);
const ofCron = (name: string, key: CronKey): string => placeOf("crons", name, key.cron_id);
const ofWebhook = (key: RunIdKey): string => `webhook ${key.run_id}`;
const ofDelivery = (name: string) => (key: DeliveryKey) => `delivery ${name} ${key.delivery_id}`;

/** The database copies values between assistants and their versions. */
const ASSISTANT = {
  config: jsonColumn(CONFIG, (key: AssistantKey) => [ofAssistant("config", key)]),
  context: jsonColumn(CONTEXT, (key: AssistantKey) => [ofAssistant("context", key)]),
  metadata: jsonColumn(METADATA, (key: AssistantKey) => [ofAssistant("metadata", key)]),
};

const THREAD = {
  metadata: jsonColumn(METADATA, (key: ThreadKey) => [ofThread("metadata", key)]),
  config: jsonColumn(COMPARED_CONFIG, (key: ThreadKey) => [ofThread("config", key)]),
  interrupts: jsonColumn(INTERRUPTS, (key: ThreadKey) => [ofThread("interrupts", key)]),
  error: jsonColumn(WHOLE_JSON, (key: ThreadKey) => [ofThread("error", key)]),
};

/** The database merges the values of the run's assistant and thread under those of the request. */
const OF_RUN = {
  metadata: jsonColumn(METADATA, (key: RunKey) => [
    ofRun("metadata", key),
    ofThread("metadata", key),
    ofAssistant("metadata", key),
  ]),
  config: jsonColumn(CONFIG, (key: RunKey) => [
    ofRun("config", key),
    ofThread("config", key),
    ofAssistant("config", key),
  ]),
  context: jsonColumn(CONTEXT, (key: RunKey) => [
    ofRun("context", key),
    // A thread's context is a member of its config.
    ofThread("config", key),
    ofAssistant("context", key),
  ]),
  kwargs: jsonColumn(KWARGS, (key: RunIdKey) => [ofRun("kwargs", key)]),
};

const checkpointMetadata = jsonColumn(
  METADATA,
  ({ checkpoint_id: id, checkpoint_ns: namespace }: CheckpointKey): Places => [
    `${placeOf("checkpoints", "metadata", id)} ${namespace}`,
  ],
);

/** Tables from which values are copied come first: a run copies from its assistant and thread. */
export const ENCRYPTED_COLUMNS = {
  assistants: ASSISTANT,
  assistant_versions: ASSISTANT,
  crons: {
    metadata: jsonColumn(METADATA, (key: CronKey) => [ofCron("metadata", key)]),
    payload: textColumn((key: CronKey) => `cron ${key.cron_id}`),
    user_id: textColumn((key: CronKey) => `cron-user ${key.cron_id}`),
    auth_user: jsonColumn(WHOLE_JSON, (key: CronKey) => [ofCron("auth_user", key)]),
  },
  store_items: {
    value: jsonColumn(WHOLE_JSON, ({ namespace, key }: ItemKey) => [
      `json store_items value ${JSON.stringify([namespace, key])}`,
    ]),
  },
  threads: THREAD,
  runs: {
    ...OF_RUN,
    error: jsonColumn(WHOLE_JSON, (key: RunIdKey) => [ofRun("error", key)]),
    // A rollback restores these values in the thread's row.
    replaced_metadata: THREAD.metadata,
    replaced_config: THREAD.config,
    auth_user: jsonColumn(WHOLE_JSON, (key: RunIdKey) => [ofRun("auth_user", key)]),
    webhook: addressColumn(ofWebhook),
  },
  run_events: { data: textColumn(({ run_id: id, seq }: EventKey) => `event ${id} ${seq}`) },
  run_traces: {
    spans: textColumn(({ run_id: id, attempt, part }: TracePartKey) => `trace ${id} ${attempt} ${part}`),
  },
  // A delivery copies its run, or the error that was encrypted for the thread.
  deliveries: {
    error: jsonColumn(WHOLE_JSON, (key: RunKey) => [ofRun("error", key), ofThread("error", key)]),
    ...OF_RUN,
    url: textColumn(ofWebhook),
    last_error: textColumn(ofDelivery("last_error")),
    configuration: textColumn(ofDelivery("configuration")),
    final_values: bytesColumn((key: ThreadKey) => `values ${key.thread_id}`),
  },
  checkpoint_elements: {
    elements: textColumn(
      ({ list, position }: { list: number; position: number }) => `elements ${list} ${position}`,
    ),
  },
  checkpoint_contents: { content: textColumn(({ hash }: { hash: string }) => `content ${hash}`) },
  checkpoints: {
    metadata: checkpointMetadata,
    metadata_text: { ...checkpointMetadata, type: "text" },
    record: textColumn(
      (key: CheckpointKey) => `checkpoint ${key.checkpoint_id.toLowerCase()} ${key.checkpoint_ns}`,
    ),
  },
  checkpoint_writes: {
    // Each line is encrypted by itself; see state/checkpoints/rows/encryption.ts.
    writes: textColumn(
      ({ checkpoint_id: id, checkpoint_ns: namespace, task_id: task, index }: WriteKey) =>
        `write ${id.toLowerCase()} ${task} ${index} ${namespace}`,
    ),
  },
} as const;
