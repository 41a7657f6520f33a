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

/** How values are stored, wherever they belong. See `EncryptedColumn`. */
interface Kind<Value, Stored = string> {
  type: EncryptedColumn<never, Value, Stored>["type"];
  plain?: (value: Value) => Stored;
  encrypt(cipher: Cipher, value: Value, place: string): Stored;
  decrypt?(cipher: Cipher | undefined, stored: unknown, places: Places): unknown;
  reencrypt(cipher: Cipher, text: string, place: string, places: Places): string;
}

const column = <Key, Value, Stored>(
  { type, plain, encrypt, decrypt, reencrypt }: Kind<Value, Stored>,
  places: (key: Key) => Places,
): EncryptedColumn<Key, Value, Stored> => ({
  type,
  places,
  plain,
  encrypted: (cipher, value, key) => encrypt(cipher, value, places(key)[0]),
  ...(decrypt && { decrypted: (cipher, stored, key) => decrypt(cipher, stored, places(key)) }),
  reencrypted(cipher, text, key, from) {
    const own = places(key);
    return reencrypt(cipher, text, own[0], from === undefined ? own : [...own, ...places(from)]);
  },
});

/** `parse` reads the JSON that `encrypt` takes. */
const json = <Value>(
  type: "json" | "jsonb",
  parse: (json: string) => Value,
  encrypt: (cipher: Cipher, value: Value, place: string) => string,
  decrypted = decryptUndamagedJson,
): Kind<Value> => ({
  type,
  encrypt,
  decrypt: (cipher, stored, places) =>
    cipher !== undefined && stored instanceof EncryptedJson
      ? (JSON.parse(decryptJson(cipher, stored.text, places)) as unknown)
      : stored,
  reencrypt: (cipher, text, place, places) => encrypt(cipher, parse(decrypted(cipher, text, places)), place),
});

const object = (
  type: "json" | "jsonb",
  encrypt: (cipher: Cipher, value: JsonObject, place: string) => JsonObject,
  decrypted?: typeof decryptUndamagedJson,
): Kind<JsonObject> => ({
  ...json(
    type,
    (text) => JSON.parse(text) as JsonObject,
    (cipher, value, place) => JSON.stringify(encrypt(cipher, value, place)),
    decrypted,
  ),
  plain: JSON.stringify,
});

const jsonText = (encrypt: (cipher: Cipher, json: string, place: string) => string): Kind<string> =>
  json("json", (text) => text, encrypt);

/** A text that looks encrypted may be a caller's own. */
const METADATA = object(
  "jsonb",
  (cipher, metadata, place) => encryptMetadata(cipher, metadata, place),
  decryptKnownJson,
);
const CONFIG = object("json", (cipher, config, place) => encryptConfig(cipher, config, { place }));
/** The database compares this column with values of requests. */
const COMPARED_CONFIG = object("json", (cipher, config, place) =>
  encryptConfig(cipher, config, { place, alike: true }),
);
const CONTEXT = object("json", (cipher, context, place) => encryptEach(cipher, context, { place }));
const WHOLE_JSON = jsonText(encryptJson);
/** `{}` stands for no interrupts, and the database compares with it. */
const INTERRUPTS = jsonText((cipher, json, place) =>
  json === "{}" ? json : encryptJson(cipher, json, place),
);

/** The members with user data. */
export const ENCRYPTED_KWARGS = [
  "input",
  "command",
  "webhook",
  "feedback_keys",
  "headers",
  "trace_context",
] as const;
const KWARGS = jsonText((cipher, json, place) =>
  JSON.stringify(encryptSome(cipher, JSON.parse(json) as JsonObject, ENCRYPTED_KWARGS, place)),
);

const TEXT: Kind<string> = {
  type: "text",
  encrypt: (cipher, text, place) => cipher.encrypt(text, place),
  decrypt: (cipher, stored, [place]) =>
    typeof stored === "string" && isEncrypted(stored) ? openText(cipher, stored, place) : stored,
  reencrypt: (cipher, text, place) => cipher.encrypt(cipher.decrypt(text, place), place),
};

const BYTES: Kind<Buffer, Buffer> = {
  type: "bytea",
  encrypt: (cipher, bytes, place) => Buffer.from(cipher.encrypt(bytes.toString("utf8"), place)),
  decrypt: (cipher, stored, [place]) =>
    cipher !== undefined && Buffer.isBuffer(stored)
      ? Buffer.from(cipher.decrypt(stored.toString("utf8"), place))
      : stored,
  reencrypt: (cipher, base64, place, places) =>
    Buffer.from(
      TEXT.reencrypt(cipher, Buffer.from(base64, "base64").toString("utf8"), place, places),
    ).toString("base64"),
};

const textColumn = <Key>(placeOf: (key: Key) => string) => column(TEXT, (key: Key): Places => [placeOf(key)]);

/**
 * Encrypts the address, because it may hold a token. The statement that ends the run needs the digest of the receiver
 * (engine/outbox/deliveries.ts).
 */
const ADDRESS: Kind<string> = {
  type: "text",
  encrypt: (cipher, address, place) => `${cipher.encrypt(address, place)} ${receiverDigest(cipher, address)}`,
  reencrypt: (cipher, text, place) =>
    ADDRESS.encrypt(cipher, cipher.decrypt(isEncrypted(text) ? text.split(" ", 1)[0]! : text, place), place),
};

/**
 * The kind of the values in each encrypted column, and the place that binds a value to its row. Never change a place:
 * stored values depend on it.
 */

interface AssistantKey {
  assistant_id: string;
}
interface ThreadKey {
  thread_id: string;
}
interface RunIdKey {
  run_id: string;
}
export interface RunKey extends AssistantKey, ThreadKey, RunIdKey {}
interface DeliveryKey {
  delivery_id: string;
}
interface EventKey extends RunIdKey {
  seq: number;
}
interface TracePartKey extends RunIdKey {
  attempt: number;
  part: number;
}
interface CronKey {
  cron_id: string;
}
interface ItemKey {
  namespace: readonly string[];
  key: string;
}
/** Copies of a thread share checkpoint ids, so that the database can copy encrypted rows. */
export interface CheckpointKey {
  checkpoint_ns: string;
  checkpoint_id: string;
}
interface WriteKey extends CheckpointKey {
  /** Empty for the writes in the row of their checkpoint. */
  task_id: string;
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
  config: column(CONFIG, (key: AssistantKey) => [ofAssistant("config", key)]),
  context: column(CONTEXT, (key: AssistantKey) => [ofAssistant("context", key)]),
  metadata: column(METADATA, (key: AssistantKey) => [ofAssistant("metadata", key)]),
};

const THREAD = {
  metadata: column(METADATA, (key: ThreadKey) => [ofThread("metadata", key)]),
  config: column(COMPARED_CONFIG, (key: ThreadKey) => [ofThread("config", key)]),
  interrupts: column(INTERRUPTS, (key: ThreadKey) => [ofThread("interrupts", key)]),
  error: column(WHOLE_JSON, (key: ThreadKey) => [ofThread("error", key)]),
};

/** The database merges the values of the run's assistant and thread under those of the request. */
const OF_RUN = {
  metadata: column(METADATA, (key: RunKey) => [
    ofRun("metadata", key),
    ofThread("metadata", key),
    ofAssistant("metadata", key),
  ]),
  config: column(CONFIG, (key: RunKey) => [
    ofRun("config", key),
    ofThread("config", key),
    ofAssistant("config", key),
  ]),
  context: column(CONTEXT, (key: RunKey) => [
    ofRun("context", key),
    // A thread's context is a member of its config.
    ofThread("config", key),
    ofAssistant("context", key),
  ]),
  kwargs: column(KWARGS, (key: RunIdKey) => [ofRun("kwargs", key)]),
};

const checkpointMetadata = column(
  METADATA,
  ({ checkpoint_id: id, checkpoint_ns: namespace }: CheckpointKey): Places => [
    `${placeOf("checkpoints", "metadata", id)} ${namespace}`,
  ],
);

/** Parts of a value are encrypted by themselves; see state/checkpoints/record.ts. */
const ofWrites = ({ checkpoint_id: id, checkpoint_ns: namespace, task_id: task }: WriteKey): string =>
  `writes ${id.toLowerCase()} ${task} ${namespace}`;

/** Tables from which values are copied come first: a run copies from its assistant and thread. */
export const ENCRYPTED_COLUMNS = {
  assistants: ASSISTANT,
  assistant_versions: ASSISTANT,
  crons: {
    metadata: column(METADATA, (key: CronKey) => [ofCron("metadata", key)]),
    payload: textColumn((key: CronKey) => `cron ${key.cron_id}`),
    user_id: textColumn((key: CronKey) => `cron-user ${key.cron_id}`),
    auth_user: column(WHOLE_JSON, (key: CronKey) => [ofCron("auth_user", key)]),
  },
  store_items: {
    value: column(WHOLE_JSON, ({ namespace, key }: ItemKey) => [
      `json store_items value ${JSON.stringify([namespace, key])}`,
    ]),
  },
  threads: THREAD,
  runs: {
    ...OF_RUN,
    error: column(WHOLE_JSON, (key: RunIdKey) => [ofRun("error", key)]),
    // A rollback restores these values in the thread's row.
    replaced_metadata: THREAD.metadata,
    replaced_config: THREAD.config,
    auth_user: column(WHOLE_JSON, (key: RunIdKey) => [ofRun("auth_user", key)]),
    webhook: column(ADDRESS, (key: RunIdKey) => [ofWebhook(key)]),
  },
  run_events: { data: textColumn(({ run_id: id, seq }: EventKey) => `event ${id} ${seq}`) },
  run_traces: {
    spans: textColumn(({ run_id: id, attempt, part }: TracePartKey) => `trace ${id} ${attempt} ${part}`),
  },
  // A delivery copies its run, or the error that was encrypted for the thread.
  deliveries: {
    error: column(WHOLE_JSON, (key: RunKey) => [ofRun("error", key), ofThread("error", key)]),
    ...OF_RUN,
    url: textColumn(ofWebhook),
    last_error: textColumn(ofDelivery("last_error")),
    configuration: textColumn(ofDelivery("configuration")),
    final_values: column(BYTES, (key: ThreadKey) => [`values ${key.thread_id}`]),
  },
  checkpoint_contents: { content: textColumn(({ hash }: { hash: string }) => `content ${hash}`) },
  checkpoints: {
    metadata: checkpointMetadata,
    metadata_text: { ...checkpointMetadata, type: "text" },
    record: textColumn(
      (key: CheckpointKey) => `checkpoint ${key.checkpoint_id.toLowerCase()} ${key.checkpoint_ns}`,
    ),
    writes: textColumn(ofWrites),
  },
  checkpoint_writes: {
    writes: textColumn(ofWrites),
  },
} as const;
