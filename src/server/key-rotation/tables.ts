import { payloadPlace, userPlace } from "../../api/crons/repository.ts";
import { eventPlace } from "../../engine/events/log.ts";
import { openFinalValues, storedFinalValues } from "../../engine/queue/final-values.ts";
import {
  openStoredWebhook,
  encryptedAddress,
  storedWebhook,
  webhookPlace,
} from "../../engine/queue/webhook-address.ts";
import {
  ASSISTANT_JSON,
  CRON_JSON,
  DELIVERY_JSON,
  ITEM_JSON,
  REPLACED_JSON,
  RUN_JSON,
  THREAD_JSON,
  type AssistantKey,
  type RunKey,
} from "../../platform/encryption/columns.ts";
import { CHECKPOINT_TABLES } from "./checkpoint-tables.ts";
import { declared, inPlace, textOf, type EncryptedRow, type EncryptedTable } from "./columns.ts";

const assistantOf = (row: EncryptedRow): AssistantKey => ({ assistant_id: textOf(row, "assistant_id") });
const runOf = (row: EncryptedRow): RunKey => ({
  ...assistantOf(row),
  thread_id: textOf(row, "thread_id"),
  run_id: textOf(row, "run_id"),
});

/** Tables whose values are copied come first: a run's configuration comes from its assistant and thread. */
export const ENCRYPTED_TABLES: readonly EncryptedTable[] = [
  {
    name: "assistants",
    key: [["assistant_id", "uuid"]],
    columns: [
      ["config", "jsonb"],
      ["context", "jsonb"],
      ["metadata", "jsonb"],
    ],
    reencrypt: (row) => declared(ASSISTANT_JSON, assistantOf(row)),
  },
  {
    name: "assistant_versions",
    key: [
      ["assistant_id", "uuid"],
      ["version", "int"],
    ],
    columns: [
      ["config", "jsonb"],
      ["context", "jsonb"],
      ["metadata", "jsonb"],
    ],
    reencrypt: (row) => declared(ASSISTANT_JSON, assistantOf(row)),
  },
  {
    name: "crons",
    key: [["cron_id", "uuid"]],
    columns: [
      ["metadata", "jsonb"],
      ["payload", "text"],
      ["user_id", "text"],
      ["auth_user", "jsonb"],
    ],
    reencrypt: (row) => ({
      ...declared(CRON_JSON, { cron_id: textOf(row, "cron_id") }),
      payload: inPlace(payloadPlace(textOf(row, "cron_id"))),
      user_id: inPlace(userPlace(textOf(row, "cron_id"))),
    }),
  },
  {
    name: "store_items",
    key: [
      ["namespace", "text[]"],
      ["key", "text"],
    ],
    columns: [["value", "jsonb"]],
    also: { labels: "to_json(t.namespace)" },
    reencrypt: (row) =>
      declared(ITEM_JSON, {
        namespace: JSON.parse(textOf(row, "labels")) as string[],
        key: textOf(row, "key"),
      }),
  },
  {
    name: "threads",
    key: [["thread_id", "uuid"]],
    columns: [
      ["metadata", "jsonb"],
      ["config", "jsonb"],
      ["interrupts", "jsonb"],
      ["error", "jsonb"],
    ],
    reencrypt: (row) => declared(THREAD_JSON, { thread_id: textOf(row, "thread_id") }),
  },
  {
    name: "runs",
    key: [["run_id", "uuid"]],
    columns: [
      ["metadata", "jsonb"],
      ["config", "jsonb"],
      ["context", "jsonb"],
      ["kwargs", "json"],
      ["error", "jsonb"],
      ["replaced_metadata", "jsonb"],
      ["replaced_config", "jsonb"],
      ["auth_user", "jsonb"],
      ["webhook", "text"],
    ],
    also: { thread_id: "t.thread_id", assistant_id: "t.assistant_id" },
    reencrypt(row) {
      const run = runOf(row);
      return {
        ...declared(RUN_JSON, run),
        ...declared(REPLACED_JSON, run),
        webhook: (text, cipher) =>
          storedWebhook(cipher, openStoredWebhook(cipher, text, run.run_id), run.run_id),
      };
    },
  },
  {
    name: "run_events",
    key: [
      ["thread_id", "uuid"],
      ["run_id", "uuid"],
      ["seq", "bigint"],
    ],
    columns: [["data", "text"]],
    reencrypt: (row) => ({
      data: inPlace(eventPlace({ runId: textOf(row, "run_id") }, Number(row.seq))),
    }),
  },
  {
    name: "webhook_deliveries",
    key: [["run_id", "uuid"]],
    columns: [
      ["error", "jsonb"],
      ["metadata", "jsonb"],
      ["config", "jsonb"],
      ["context", "jsonb"],
      ["kwargs", "json"],
      ["url", "text"],
      ["receiver", "text"],
      ["last_error", "text"],
      ["final_values", "bytea"],
    ],
    also: { thread_id: "t.thread_id", assistant_id: "t.assistant_id" },
    reencrypt(row) {
      const run = runOf(row);
      const place = webhookPlace(run.run_id);
      return {
        ...declared(DELIVERY_JSON, run),
        url: inPlace(place),
        receiver: (_, cipher) =>
          encryptedAddress(cipher, cipher.decrypt(textOf(row, "url"), place), run.run_id).receiver,
        last_error: inPlace(place),
        final_values(text, cipher) {
          const values = openFinalValues(cipher, Buffer.from(text, "base64"), run.thread_id);
          return (storedFinalValues(cipher, values, run.thread_id) ?? Buffer.alloc(0)).toString("base64");
        },
      };
    },
  },
  ...CHECKPOINT_TABLES,
];
