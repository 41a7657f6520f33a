import { payloadPlace, userPlace } from "../crons/repository.ts";
import { eventPlace } from "../events/log.ts";
import { openFinalValues, storedFinalValues } from "../queue/final-values.ts";
import {
  openStoredWebhook,
  openWebhook,
  sealedAddress,
  storedReason,
  storedWebhook,
} from "../queue/webhook-address.ts";
import { CHECKPOINT_TABLES } from "./checkpoint-tables.ts";
import {
  config,
  context,
  each,
  given,
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
    reseal: each(() => ({ config: config(), context: context(), metadata })),
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
    reseal: each(() => ({ config: config(), context: context(), metadata })),
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
    reseal: each((row) => ({
      metadata,
      payload: inPlace(payloadPlace(textOf(row, "cron_id"))),
      user_id: inPlace(userPlace(textOf(row, "cron_id"))),
      auth_user: whole,
    })),
  },
  {
    name: "store_items",
    key: [
      ["namespace", "text[]"],
      ["key", "text"],
    ],
    columns: [["value", "jsonb"]],
    reseal: each(() => ({ value: whole })),
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
    reseal: each((row) => ({
      metadata,
      config: config(textOf(row, "thread_id")),
      interrupts,
      error: whole,
    })),
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
    reseal(row, cipher) {
      const [runId, threadId] = [textOf(row, "run_id"), textOf(row, "thread_id")];
      return {
        ...each(() => ({
          metadata,
          config: config(threadId),
          context: context(threadId),
          kwargs,
          error: whole,
          replaced_metadata: metadata,
          replaced_config: config(threadId),
          auth_user: whole,
        }))(row, cipher),
        webhook: given(row.webhook, (text) =>
          storedWebhook(cipher, openStoredWebhook(cipher, text, runId), runId),
        ),
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
    reseal: each((row) => ({
      data: inPlace(eventPlace({ runId: textOf(row, "run_id") }, Number(row.seq))),
    })),
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
    reseal(row, cipher) {
      const [runId, threadId] = [textOf(row, "run_id"), textOf(row, "thread_id")];
      const opened = openWebhook(cipher, {
        run_id: runId,
        url: textOf(row, "url"),
        last_error: row.last_error ?? null,
      });
      const sealed = each(() => ({ error: whole, metadata, config: config(), context: context(), kwargs }));
      return {
        ...sealed(row, cipher),
        ...sealedAddress(cipher, opened.url, runId),
        last_error: given(opened.last_error, (reason) => storedReason(cipher, reason, runId)),
        final_values: given(row.final_values, (text) => {
          const values = openFinalValues(cipher, Buffer.from(text, "base64"), threadId);
          return (storedFinalValues(cipher, values, threadId) ?? Buffer.alloc(0)).toString("base64");
        }),
      };
    },
  },
  ...CHECKPOINT_TABLES,
];
