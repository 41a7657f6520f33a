import type { Encryption } from "../../platform/database/database.ts";
import { storedReceiver } from "../../platform/domain/webhook-address.ts";
import { ENCRYPTED_COLUMNS } from "../../platform/encryption/columns.ts";
import type { AnyColumn, EncryptedTable } from "../../platform/encryption/encryption.ts";
import { decryptKnownJson } from "../../platform/encryption/json.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { openWrites, reencryptRecord, storedWrites } from "../../state/checkpoints/rows/encryption.ts";
import { isReservedMetadata } from "../../state/checkpoints/rows/metadata.ts";

/** null: SQL null. */
export type EncryptedRow = Readonly<Record<string, string | null>>;

/** Text that needs no encryption stays. */
type Reencrypt = (text: string, encryption: Encryption) => string;

/** How the rotation reads a table that platform/encryption/columns.ts declares. */
interface TableKeys {
  /** The primary key in order, with types. */
  key: readonly (readonly [column: string, type: string])[];
  /** SQL for further ids of the row, by name; `t` is the row. */
  also?: Readonly<Record<string, string>>;
  /** The ids as the declaration names them. Default: the texts of the row. */
  ids?: (row: EncryptedRow) => object;
  /** Text columns that hold digests of encrypted values. */
  digests?: readonly string[];
  /** Columns that need more than their declaration. */
  special?: (row: EncryptedRow) => Readonly<Record<string, Reencrypt>>;
}

export interface WalkedTable extends Pick<TableKeys, "key" | "also"> {
  name: string;
  /** With types. */
  columns: readonly (readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"])[];
  reencrypt(row: EncryptedRow): Readonly<Record<string, Reencrypt>>;
}

const textOf = (row: EncryptedRow, column: string): string => row[column] ?? "";

const HOLDS_ENCRYPTED = '"enc1:';

const checkpointOf = (row: EncryptedRow) => ({
  checkpoint_ns: textOf(row, "checkpoint_ns"),
  checkpoint_id: textOf(row, "checkpoint_id"),
});

/**
 * Keeps open keys open if the checkpoint has an encrypted part, except newly chosen ones. Otherwise encrypts all keys
 * except reserved ones and those of the run.
 */
const checkpointMetadata =
  (row: EncryptedRow): Reencrypt =>
  (text, encryption) => {
    const { cipher } = encryption;
    if (cipher === undefined) return text;
    const checkpoint = checkpointOf(row);
    const stored = JSON.parse(text) as JsonObject;
    if (text.includes(HOLDS_ENCRYPTED)) {
      const places = ENCRYPTED_COLUMNS.checkpoints.metadata.places(checkpoint);
      const next = Object.entries(stored).map(([key, value]) => {
        const before = JSON.stringify({ [key]: value });
        const after = decryptKnownJson(cipher, before, places);
        const wasEncrypted = typeof value === "string" && after !== before;
        return encryption.encryptedMetadata(JSON.parse(after) as JsonObject, checkpoint, () => !wasEncrypted);
      });
      return JSON.stringify(Object.fromEntries(next.flatMap((entry) => Object.entries(entry))));
    }
    const searchable = new Set(JSON.parse(row.searchable ?? "[]") as string[]);
    const staysOpen = (key: string): boolean => isReservedMetadata(key) || searchable.has(key);
    return JSON.stringify(encryption.encryptedMetadata(stored, checkpoint, staysOpen));
  };

const CHECKPOINT_KEY = [
  ["thread_id", "uuid"],
  ["checkpoint_ns", "text"],
  ["checkpoint_id", "uuid"],
] as const;

const CHECKPOINT_TABLES = {
  checkpoint_elements: {
    key: [
      ["thread_id", "uuid"],
      ["list_id", "bigint"],
      ["position", "int"],
    ],
    also: { list: "t.list_id" },
    special: (row) => ({
      // A pruned checkpoint has an empty text.
      elements: (text, encryption) =>
        text === ""
          ? text
          : encryption.reencrypted("checkpoint_elements", "elements", text, {
              list: Number(row.list),
              position: Number(row.position),
            }),
    }),
  },
  checkpoint_contents: {
    key: [
      ["thread_id", "uuid"],
      ["hash", "uuid"],
    ],
    also: { object: "t.object_id" },
    // Objects have a walk of their own (objects.ts).
    special: (row): Readonly<Record<string, Reencrypt>> =>
      row.object == null ? {} : { content: (text) => text },
  },
  checkpoints: {
    key: CHECKPOINT_KEY,
    also: {
      searchable: `(select json_agg(key) from threadloom.runs r, jsonb_object_keys(r.metadata) as key
        where r.run_id = t.run_id)`,
    },
    special: (row) => ({
      metadata: checkpointMetadata(row),
      metadata_text: checkpointMetadata(row),
      record: (text, encryption) => reencryptRecord(encryption, text, checkpointOf(row)),
    }),
  },
  checkpoint_writes: {
    key: [...CHECKPOINT_KEY, ["task_id", "uuid"], ["run_id", "uuid"]],
    also: { task: "coalesce(t.task_name, t.task_id::text)" },
    special: (row) => ({
      writes(text, encryption) {
        const [checkpoint, task] = [checkpointOf(row), textOf(row, "task")];
        return storedWrites(encryption, openWrites(encryption, text, checkpoint, task), checkpoint, task);
      },
    }),
  },
} satisfies Record<string, TableKeys>;

const OF_RUN = { thread_id: "t.thread_id", assistant_id: "t.assistant_id" };

/** Tables whose values are copied come first: a run's configuration comes from its assistant and thread. */
const TABLES: Readonly<Record<EncryptedTable, TableKeys>> = {
  assistants: { key: [["assistant_id", "uuid"]] },
  assistant_versions: {
    key: [
      ["assistant_id", "uuid"],
      ["version", "int"],
    ],
  },
  crons: { key: [["cron_id", "uuid"]] },
  store_items: {
    key: [
      ["namespace", "text[]"],
      ["key", "text"],
    ],
    also: { labels: "to_json(t.namespace)" },
    ids: (row) => ({ ...row, namespace: JSON.parse(textOf(row, "labels")) as string[] }),
  },
  threads: { key: [["thread_id", "uuid"]] },
  runs: { key: [["run_id", "uuid"]], also: OF_RUN },
  run_events: {
    key: [
      ["thread_id", "uuid"],
      ["run_id", "uuid"],
      ["seq", "bigint"],
    ],
  },
  run_traces: {
    key: [
      ["run_id", "uuid"],
      ["attempt", "int"],
      ["part", "int"],
    ],
  },
  deliveries: {
    key: [["delivery_id", "uuid"]],
    also: { ...OF_RUN, run_id: "t.run_id" },
    digests: ["receiver"],
    // The walk compares the numbers of decrypted and encrypted values, so each value is encrypted again.
    special: (row) => ({
      receiver(_, encryption) {
        const key = { delivery_id: textOf(row, "delivery_id") };
        const url = row["url"];
        if (typeof url === "string") {
          // The statement that ends a run takes the digest from `runs.webhook`.
          const ofRun = { run_id: key.delivery_id };
          const address = encryption.decryptedValue("deliveries", "url", url, ofRun);
          return encryption.stored("runs", "webhook", address, ofRun).split(" ", 2)[1] ?? "";
        }
        const stored = textOf(row, "configuration");
        const config = encryption.decryptedValue("deliveries", "configuration", stored, key);
        encryption.stored("deliveries", "configuration", config, key);
        return storedReceiver(encryption, (JSON.parse(config) as { url: string }).url);
      },
    }),
  },
  ...CHECKPOINT_TABLES,
};

export const ENCRYPTED_TABLES: readonly WalkedTable[] = Object.entries(TABLES).map(
  ([table, { key, also, ids = (row: EncryptedRow) => row, digests = [], special }]): WalkedTable => {
    const name = table as EncryptedTable;
    const declared = Object.entries(ENCRYPTED_COLUMNS[name] as Readonly<Record<string, AnyColumn>>);
    return {
      name,
      key,
      ...(also && { also }),
      columns: [
        ...declared.map(([column, { type }]) => [column, type] as const),
        ...digests.map((column) => [column, "text"] as const),
      ],
      reencrypt: (row) => ({
        ...Object.fromEntries(
          declared.map(([column, { reencrypted }]): [string, Reencrypt] => [
            column,
            (text, { cipher }) => (cipher === undefined ? text : reencrypted(cipher, text, ids(row))),
          ]),
        ),
        ...special?.(row),
      }),
    };
  },
);
