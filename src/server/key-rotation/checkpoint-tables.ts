import { encryptOwnMetadata } from "../../state/checkpoints/rows/metadata.ts";
import {
  checkpointPlace,
  contentPlace,
  elementsPlace,
  reencryptRecord,
  reencryptWrites,
} from "../../state/checkpoints/rows/encryption.ts";
import { CHECKPOINT_JSON, type CheckpointKey } from "../../platform/encryption/columns.ts";
import { decryptKnownJson, encryptEach, encryptMetadata } from "../../platform/encryption/json.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { inPlace, textOf, type Reencrypt, type EncryptedRow, type EncryptedTable } from "./columns.ts";

const HOLDS_ENCRYPTED = '"enc1:';

/**
 * A checkpoint with an encrypted part was split when it was stored: its open keys stay open, except newly chosen ones.
 * Metadata older than any key is encrypted except for the run's own; without the run, all of it is.
 */
const checkpointMetadata =
  (searchable: string | null | undefined, checkpoint: CheckpointKey): Reencrypt =>
  (text, cipher) => {
    const places = CHECKPOINT_JSON.metadata.places(checkpoint);
    const [place] = places;
    const stored = JSON.parse(text) as JsonObject;
    if (text.includes(HOLDS_ENCRYPTED)) {
      const next = Object.entries(stored).map(([key, value]) => {
        const before = JSON.stringify({ [key]: value });
        const after = decryptKnownJson(cipher, before, places);
        const wasEncrypted = typeof value === "string" && after !== before;
        const opened = JSON.parse(after) as JsonObject;
        const isChosen = cipher.metadataKeys.has(key);
        return wasEncrypted && !isChosen
          ? encryptEach(cipher, opened, { place })
          : encryptMetadata(cipher, opened, place);
      });
      return JSON.stringify(Object.fromEntries(next.flatMap((entry) => Object.entries(entry))));
    }
    const keys = searchable == null ? [] : (JSON.parse(searchable) as string[]);
    return JSON.stringify(encryptOwnMetadata(cipher, stored, new Set(keys), checkpoint));
  };

const task = (row: EncryptedRow) => ({
  checkpointNs: textOf(row, "checkpoint_ns"),
  checkpointId: textOf(row, "checkpoint_id"),
  taskId: textOf(row, "task"),
});

const CHECKPOINT_KEY = [
  ["thread_id", "uuid"],
  ["checkpoint_ns", "text"],
  ["checkpoint_id", "uuid"],
] as const;

/** The largest tables. */
export const CHECKPOINT_TABLES: readonly EncryptedTable[] = [
  {
    name: "checkpoint_elements",
    key: [
      ["thread_id", "uuid"],
      ["list_id", "bigint"],
      ["position", "int"],
    ],
    columns: [["elements", "text"]],
    reencrypt(row) {
      const place = elementsPlace({ list: Number(row.list_id), position: Number(row.position) });
      // A pruned checkpoint has an empty text.
      return { elements: (text, cipher) => (text === "" ? text : inPlace(place)(text, cipher)) };
    },
  },
  {
    name: "checkpoint_contents",
    key: [
      ["thread_id", "uuid"],
      ["hash", "uuid"],
    ],
    columns: [["content", "text"]],
    reencrypt: (row) => ({ content: inPlace(contentPlace(textOf(row, "hash"))) }),
  },
  {
    name: "checkpoints",
    key: CHECKPOINT_KEY,
    columns: [
      ["metadata", "jsonb"],
      ["metadata_text", "text"],
      ["record", "text"],
    ],
    also: {
      searchable: `(select json_agg(key) from threadloom.runs r, jsonb_object_keys(r.metadata) as key
        where r.run_id = t.run_id)`,
    },
    reencrypt(row) {
      const { checkpointNs, checkpointId } = task(row);
      const place = checkpointPlace(checkpointNs, checkpointId);
      const next = checkpointMetadata(row.searchable, {
        checkpoint_ns: checkpointNs,
        checkpoint_id: checkpointId,
      });
      return {
        metadata: next,
        metadata_text: next,
        record: (text, cipher) => reencryptRecord(cipher, text, place),
      };
    },
  },
  {
    name: "checkpoint_writes",
    key: [...CHECKPOINT_KEY, ["task_id", "uuid"], ["run_id", "uuid"]],
    columns: [["writes", "text"]],
    also: { task: "coalesce(t.task_name, t.task_id::text)" },
    reencrypt: (row) => ({ writes: (text, cipher) => reencryptWrites(cipher, text, task(row)) }),
  },
];
