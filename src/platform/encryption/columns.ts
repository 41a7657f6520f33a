/**
 * The kind of the values in each encrypted column, and the place that binds a value to its row. Never change a place:
 * stored values depend on it.
 */

import type { Places } from "./cipher.ts";
import {
  addressColumn,
  bytesColumn,
  COMPARED_CONFIG,
  CONFIG,
  CONTEXT,
  INTERRUPTS,
  jsonColumn,
  KWARGS,
  METADATA,
  textColumn,
  WHOLE_JSON,
} from "./column-kinds.ts";

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
