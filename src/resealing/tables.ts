import { payloadPlace, userPlace } from "../crons/repository.ts";
import { eventPlace } from "../events/log.ts";
import { openFinalValues, storedFinalValues } from "../queue/final-values.ts";
import { openStoredWebhook, sealedAddress, storedWebhook, webhookPlace } from "../queue/webhook-address.ts";
import { CHECKPOINT_TABLES } from "./checkpoint-tables.ts";
import {
  config,
  context,
  inPlace,
  interrupts,
  kwargs,
  metadata,
  textOf,
  whole,
  type SealedTable,
} from "./columns.ts";

/** All that may be sealed. Those that others are copied from stand first: a run's configuration comes from its assistant and its thread. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    name: "assistants",
    key: [["assistant_id", "uuid"]],
    columns: [
      ["config", "jsonb"],
      ["context", "jsonb"],
      ["metadata", "jsonb"],
    ],
    reseals: () => ({ config: config(), context: context(), metadata }),
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
    reseals: () => ({ config: config(), context: context(), metadata }),
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
    reseals: (row) => ({
      metadata,
      payload: inPlace(payloadPlace(textOf(row, "cron_id"))),
      user_id: inPlace(userPlace(textOf(row, "cron_id"))),
      auth_user: whole,
    }),
  },
  {
    name: "store_items",
    key: [
      ["namespace", "text[]"],
      ["key", "text"],
    ],
    columns: [["value", "jsonb"]],
    reseals: () => ({ value: whole }),
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
    reseals: (row) => ({
      metadata,
      config: config(textOf(row, "thread_id")),
      interrupts,
      error: whole,
    }),
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
    also: { thread_id: "t.thread_id" },
    reseals(row) {
      const [runId, threadId] = [textOf(row, "run_id"), textOf(row, "thread_id")];
      return {
        metadata,
        config: config(threadId),
        context: context(threadId),
        kwargs,
        error: whole,
        replaced_metadata: metadata,
        replaced_config: config(threadId),
        auth_user: whole,
        webhook: (text, cipher) => storedWebhook(cipher, openStoredWebhook(cipher, text, runId), runId),
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
    reseals: (row) => ({
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
    also: { thread_id: "t.thread_id" },
    reseals(row) {
      const [runId, threadId] = [textOf(row, "run_id"), textOf(row, "thread_id")];
      const place = webhookPlace(runId);
      return {
        error: whole,
        metadata,
        config: config(),
        context: context(),
        kwargs,
        url: inPlace(place),
        receiver: (_, cipher) =>
          sealedAddress(cipher, cipher.open(textOf(row, "url"), place), runId).receiver,
        last_error: inPlace(place),
        final_values(text, cipher) {
          const values = openFinalValues(cipher, Buffer.from(text, "base64"), threadId);
          return (storedFinalValues(cipher, values, threadId) ?? Buffer.alloc(0)).toString("base64");
        },
      };
    },
  },
  ...CHECKPOINT_TABLES,
];
