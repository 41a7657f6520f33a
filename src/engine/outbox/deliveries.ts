import type { Database } from "../../platform/database/database.ts";
import { statement, type Fragment } from "../../platform/database/statement.ts";
import type { WebhookDeliveryRow } from "../../platform/database/tables.ts";
import { DUE_NOW, heldCondition, OF_ATTEMPT, sendingOf, type Attempt } from "./sending.ts";

export type SentDelivery = Pick<WebhookDeliveryRow, (typeof SENT)[number] | "kwargs" | "config" | "context">;

const SENT = [
  "run_id",
  "thread_id",
  "assistant_id",
  "url",
  "run_status",
  "error",
  "metadata",
  "multitask_strategy",
  "run_created_at",
  "run_started_at",
  "run_ended_at",
  "final_values",
  "values_omitted",
  "last_error",
] as const satisfies readonly (keyof WebhookDeliveryRow)[];

const WEBHOOKS = { table: "webhook_deliveries", key: "run_id" } as const;
const sending = sendingOf(WEBHOOKS);

/** Index: webhook_deliveries_pkey. */
const READ = statement(
  OF_ATTEMPT,
  (sql) =>
    `select kwargs, config, context, ${SENT.join(", ")} from threadloom.webhook_deliveries where ${heldCondition(WEBHOOKS, sql)}`,
);

/** Index: webhook_deliveries_settled. */
const REMOVE_SETTLED = statement(
  { seconds: "float8", limit: "bigint" },
  (sql) => `delete from threadloom.webhook_deliveries where run_id in (
  select run_id from threadloom.webhook_deliveries where settled_at < now() - make_interval(secs => ${sql.seconds})
  order by settled_at limit ${sql.limit} for update skip locked)`,
);

/** Any state → pending. */
const REPLAY = statement(
  { runId: "uuid", visible: "fragment" },
  (sql) => `update threadloom.webhook_deliveries d set ${DUE_NOW}
  where d.run_id = ${sql.runId} and ${sql.visible} returning d.run_id`,
);

export const createDeliveries = (database: Database) => ({
  ...sending(database, (reason, id) =>
    database.encryption.stored("webhook_deliveries", "last_error", reason, { run_id: id }),
  ),

  /** Undefined if this process no longer holds the delivery. Throws an `EncryptionError`. */
  async read(attempt: Attempt): Promise<SentDelivery | undefined> {
    const [row] = await READ.query<SentDelivery>(database, attempt);
    return row && database.encryption.decrypted("webhook_deliveries", row);
  },

  async removeSettled(seconds: number, limit: number): Promise<number> {
    const { text, values } = REMOVE_SETTLED.compile({ seconds, limit });
    return (await database.execute(text, values)).rowCount ?? 0;
  },

  /** `visible`: a condition on the row `d`. */
  async replay(runId: string, visible: Fragment): Promise<boolean> {
    return (await REPLAY.query(database, { runId, visible })).length > 0;
  },
});

export type Deliveries = ReturnType<typeof createDeliveries>;
