import type { Database } from "../../platform/database/database.ts";
import { statement, type Fragment } from "../../platform/database/statement.ts";
import type { WebhookDeliveryRow } from "../../platform/database/tables.ts";
import { claimDeliveries, type ClaimOptions, type HeldDelivery } from "./claim.ts";
import { GIVE_UP_DAYS } from "./schedule.ts";

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

type Attempt = Pick<HeldDelivery, "runId" | "attempt">;
const OF_ATTEMPT = { runId: "uuid", attempt: "integer" } as const;
const heldCondition = (sql: Readonly<Record<keyof typeof OF_ATTEMPT, string>>): string =>
  `run_id = ${sql.runId} and attempts = ${sql.attempt} and state = 'pending'`;

/** Index: webhook_deliveries_pkey. */
const READ = statement(
  OF_ATTEMPT,
  (sql) =>
    `select kwargs, config, context, ${SENT.join(", ")} from threadloom.webhook_deliveries where ${heldCondition(sql)}`,
);

const DELIVERED = statement(
  { ...OF_ATTEMPT, status: "integer" },
  (sql) => `update threadloom.webhook_deliveries set state = 'delivered', settled_at = now(),
  last_status = ${sql.status}, last_error = null where ${heldCondition(sql)}`,
);

const FAILED = statement(
  { ...OF_ATTEMPT, status: "integer", reason: "text", pauseSeconds: "float8", forGood: "boolean" },
  (sql) => `update threadloom.webhook_deliveries set failures = failures + 1,
  last_status = ${sql.status}, last_error = ${sql.reason},
  due_at = now() + make_interval(secs => ${sql.pauseSeconds}),
  state = case when ${sql.forGood} or now() + make_interval(secs => ${sql.pauseSeconds}) > give_up_at then 'failed' else 'pending' end,
  settled_at = case when ${sql.forGood} or now() + make_interval(secs => ${sql.pauseSeconds}) > give_up_at then now() end
where ${heldCondition(sql)} returning state`,
);

const HAND_BACK = statement(
  OF_ATTEMPT,
  (sql) => `update threadloom.webhook_deliveries set due_at = now() where ${heldCondition(sql)}`,
);

/** Index: webhook_deliveries_settled. */
const REMOVE_SETTLED = statement(
  { seconds: "float8", limit: "bigint" },
  (sql) => `delete from threadloom.webhook_deliveries where run_id in (
  select run_id from threadloom.webhook_deliveries where settled_at < now() - make_interval(secs => ${sql.seconds})
  order by settled_at limit ${sql.limit} for update skip locked)`,
);

/** Any state → pending. `attempts` grows, so a process that sends the delivery now is fenced off. */
const REPLAY = statement(
  { runId: "uuid", visible: "fragment" },
  (sql) => `update threadloom.webhook_deliveries d set state = 'pending', attempts = attempts + 1,
  failures = 0, due_at = now(), settled_at = null, last_error = null, last_status = null,
  give_up_at = now() + interval '${GIVE_UP_DAYS} days'
  where d.run_id = ${sql.runId} and ${sql.visible} returning d.run_id`,
);

export const createDeliveries = (database: Database) => ({
  claim: (options: ClaimOptions) => claimDeliveries(database, options),

  /** Undefined if this process no longer holds the delivery. Throws an `EncryptionError`. */
  async read(attempt: Attempt): Promise<SentDelivery | undefined> {
    const [row] = await READ.query<SentDelivery>(database, attempt);
    return row && database.encryption.decrypted("webhook_deliveries", row);
  },

  async delivered(attempt: Attempt, status: number): Promise<void> {
    await DELIVERED.query(database, { ...attempt, status });
  },

  /** Returns whether the delivery is given up; undefined if this process no longer holds it. */
  async failed(
    attempt: Attempt,
    failure: { status: number | null; reason: string; pauseSeconds: number; forGood: boolean },
  ): Promise<boolean | undefined> {
    const key = { run_id: attempt.runId };
    const reason = database.encryption.stored("webhook_deliveries", "last_error", failure.reason, key);
    const [row] = await FAILED.query<{ state: string }>(database, { ...attempt, ...failure, reason });
    return row && row.state === "failed";
  },

  async handBack(attempt: Attempt): Promise<void> {
    await HAND_BACK.query(database, attempt);
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
