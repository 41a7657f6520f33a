import { decryptKnownJson } from "../../platform/encryption/json.ts";
import { ENCRYPTED_COLUMNS } from "../../platform/encryption/columns.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { openWrites, reencryptRecord, storedWrites } from "../../state/checkpoints/rows/encryption.ts";
import { isReservedMetadata } from "../../state/checkpoints/rows/metadata.ts";
import { textOf, type EncryptedRow, type Reencrypt, type TableKeys } from "./columns.ts";

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

export const CHECKPOINT_TABLES = {
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
