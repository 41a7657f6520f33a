import type { Encryption } from "../../platform/database/database.ts";
import { ENCRYPTED_COLUMNS } from "../../platform/encryption/columns.ts";
import { columnOf, type EncryptedTable } from "../../platform/encryption/encryption.ts";
import { decryptKnownJson } from "../../platform/encryption/json.ts";
import { ENCRYPTED_PREFIX, isEncrypted } from "../../platform/encryption/cipher.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { keyOfWrites, reencryptWrites } from "../../state/checkpoints/record.ts";
import { isReservedMetadata } from "../../state/checkpoints/metadata.ts";

/** null: SQL null. */
export type EncryptedRow = Readonly<Record<string, string | null>>;

/** Text that needs no encryption stays. */
type Reencrypt = (text: string, encryption: Encryption, row: EncryptedRow) => string;

/** How the rotation reads a table that platform/encryption/columns.ts declares. */
interface TableKeys {
  /** The primary key in order, with types. */
  key: Readonly<Record<string, KeyType>>;
  /** SQL for further ids of the row, by name; `t` is the row. */
  also?: Readonly<Record<string, string>>;
  /** The ids as the declaration names them. Default: the texts of the row. */
  ids?: (row: EncryptedRow) => object;
  /** Columns that need more than their declaration, and text columns with digests of encrypted values. */
  special?: Readonly<Record<string, Reencrypt>>;
}

export type KeyType = "uuid" | "int" | "bigint" | "text" | "text[]";

export interface WalkedTable extends Pick<TableKeys, "key" | "also"> {
  name: string;
  /** With types. */
  columns: readonly (readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"])[];
  reencrypt(column: string, ...of: Parameters<Reencrypt>): string;
}

const textOf = (row: EncryptedRow, column: string): string => row[column] ?? "";

const checkpointOf = (row: EncryptedRow) => ({
  checkpoint_ns: textOf(row, "checkpoint_ns"),
  checkpoint_id: textOf(row, "checkpoint_id"),
});

/**
 * Keeps open keys open if the checkpoint has an encrypted part, except newly chosen ones. Otherwise encrypts all keys
 * except reserved ones and those of the run.
 */
const checkpointMetadata: Reencrypt = (text, encryption, row) => {
  const checkpoint = checkpointOf(row);
  const sealed = Object.entries(JSON.parse(text) as JsonObject).filter(
    ([, value]) => typeof value === "string" && isEncrypted(value),
  );
  const isSealed = (key: string): boolean => sealed.some(([name]) => name === key);
  const searchable = new Set(JSON.parse(row.searchable ?? "[]") as string[]);
  const staysOpen = text.includes(`"${ENCRYPTED_PREFIX}`)
    ? (key: string) => !isSealed(key)
    : (key: string) => isReservedMetadata(key) || searchable.has(key);
  const places = ENCRYPTED_COLUMNS.checkpoints.metadata.places(checkpoint);
  const opened = decryptKnownJson(encryption.cipher!, text, places);
  return JSON.stringify(
    encryption.encryptedMetadata(JSON.parse(opened) as JsonObject, checkpoint, staysOpen),
  );
};

const CHECKPOINT_KEY = { thread_id: "uuid", checkpoint_ns: "text", checkpoint_id: "uuid" } as const;
const OF_RUN = { thread_id: "t.thread_id", assistant_id: "t.assistant_id" };
const DIGEST = /^[0-9a-f]{32}$/;

/** Tables whose values are copied come first: a run's configuration comes from its assistant and thread. */
const TABLES: Readonly<Record<EncryptedTable, TableKeys>> = {
  assistants: { key: { assistant_id: "uuid" } },
  assistant_versions: { key: { assistant_id: "uuid", version: "int" } },
  crons: { key: { cron_id: "uuid" } },
  store_items: {
    key: { namespace: "text[]", key: "text" },
    also: { labels: "to_json(t.namespace)" },
    ids: (row) => ({ ...row, namespace: JSON.parse(textOf(row, "labels")) as string[] }),
  },
  threads: { key: { thread_id: "uuid" } },
  runs: { key: { run_id: "uuid" }, also: OF_RUN },
  run_events: { key: { thread_id: "uuid", run_id: "uuid", seq: "bigint" } },
  run_traces: { key: { run_id: "uuid", attempt: "int", part: "int" } },
  deliveries: {
    key: { delivery_id: "uuid" },
    also: { ...OF_RUN, run_id: "t.run_id" },
    // Deliveries to one receiver count together, so a digest of an older key stays: it reveals nothing of the key.
    special: {
      receiver: (text, { digest }) => (DIGEST.test(text) ? text : digest(`receiver ${text}`)),
    },
  },
  // `walk.ts` also reads the object, if the content is in the object store.
  checkpoint_contents: { key: { thread_id: "uuid", hash: "uuid" }, also: { object: "t.object_id" } },
  checkpoints: {
    key: CHECKPOINT_KEY,
    also: {
      searchable: `(select json_agg(key) from threadloom.runs r, jsonb_object_keys(r.metadata) as key
        where r.run_id = t.run_id)`,
    },
    special: {
      metadata: checkpointMetadata,
      metadata_text: checkpointMetadata,
      writes: (text, encryption, row) =>
        reencryptWrites(encryption, "checkpoints", text, keyOfWrites(checkpointOf(row))),
    },
  },
  checkpoint_writes: {
    key: { ...CHECKPOINT_KEY, task_id: "uuid", run_id: "uuid" },
    special: {
      writes: (text, encryption, row) =>
        reencryptWrites(encryption, "checkpoint_writes", text, {
          ...checkpointOf(row),
          task_id: textOf(row, "task_id"),
        }),
    },
  },
};

export const ENCRYPTED_TABLES: readonly WalkedTable[] = Object.entries(TABLES).map(
  ([table, { key, also, ids = (row: EncryptedRow) => row, special = {} }]): WalkedTable => {
    const name = table as EncryptedTable;
    const declared = Object.keys(ENCRYPTED_COLUMNS[name]);
    const digests = Object.keys(special).filter((column) => !declared.includes(column));
    return {
      name,
      key,
      ...(also && { also }),
      columns: [
        ...declared.map((column) => [column, columnOf(name, column).type] as const),
        ...digests.map((column) => [column, "text"] as const),
      ],
      reencrypt: (column, text, encryption, row) =>
        Object.hasOwn(special, column)
          ? special[column]!(text, encryption, row)
          : columnOf(name, column).reencrypted(encryption.cipher!, text, ids(row)),
    };
  },
);
