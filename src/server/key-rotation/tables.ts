import { ENCRYPTED_COLUMNS } from "../../platform/encryption/columns.ts";
import type { AnyColumn, EncryptedTable } from "../../platform/encryption/encryption.ts";
import { storedReceiver } from "../../platform/domain/webhook-address.ts";
import { CHECKPOINT_TABLES } from "./checkpoint-tables.ts";
import { textOf, type EncryptedRow, type Reencrypt, type TableKeys, type WalkedTable } from "./columns.ts";

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
