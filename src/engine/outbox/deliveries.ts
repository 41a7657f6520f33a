import type { Database } from "../../platform/database/database.ts";
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
const OF_ATTEMPT = "run_id = $1 and attempts = $2 and state = 'pending'";

/** Index: webhook_deliveries_pkey. */
const READ = `select kwargs, config, context, ${SENT.join(", ")} from threadloom.webhook_deliveries where ${OF_ATTEMPT}`;

const DELIVERED = `update threadloom.webhook_deliveries set state = 'delivered', settled_at = now(), last_status = $3,
  last_error = null where ${OF_ATTEMPT}`;

/** `$6`: the receiver refuses for good. */
const FAILED = `update threadloom.webhook_deliveries set failures = failures + 1, last_status = $3, last_error = $4,
  due_at = now() + make_interval(secs => $5),
  state = case when $6 or now() + make_interval(secs => $5) > give_up_at then 'failed' else 'pending' end,
  settled_at = case when $6 or now() + make_interval(secs => $5) > give_up_at then now() end
where ${OF_ATTEMPT} returning state`;

const HAND_BACK = `update threadloom.webhook_deliveries set due_at = now() where ${OF_ATTEMPT}`;

/** Index: webhook_deliveries_settled. */
const REMOVE_SETTLED = `delete from threadloom.webhook_deliveries where run_id in (
  select run_id from threadloom.webhook_deliveries where settled_at < now() - make_interval(secs => $1)
  order by settled_at limit $2 for update skip locked)`;

/** Any state → pending. `attempts` grows, so a process that sends the delivery now is fenced off. */
const REPLAY = `state = 'pending', attempts = attempts + 1, failures = 0, due_at = now(), settled_at = null,
  last_error = null, last_status = null, give_up_at = now() + interval '${GIVE_UP_DAYS} days'`;

export const createDeliveries = (database: Database) => ({
  claim: (options: ClaimOptions) => claimDeliveries(database, options),

  /** Undefined if this process no longer holds the delivery. Throws an `EncryptionError`. */
  async read({ runId, attempt }: Attempt): Promise<SentDelivery | undefined> {
    const [row] = await database.query<SentDelivery>(READ, [runId, attempt]);
    return row && database.encryption.decrypted("webhook_deliveries", row);
  },

  async delivered({ runId, attempt }: Attempt, status: number): Promise<void> {
    await database.query(DELIVERED, [runId, attempt, status]);
  },

  /** Returns whether the delivery is given up; undefined if this process no longer holds it. */
  async failed(
    { runId, attempt }: Attempt,
    failure: { status: number | null; reason: string; pauseSeconds: number; forGood: boolean },
  ): Promise<boolean | undefined> {
    const { status, reason, pauseSeconds, forGood } = failure;
    const stored = database.encryption.stored("webhook_deliveries", "last_error", reason, {
      run_id: runId,
    });
    const values = [runId, attempt, status, stored, pauseSeconds, forGood];
    const [row] = await database.query<{ state: string }>(FAILED, values);
    return row && row.state === "failed";
  },

  async handBack({ runId, attempt }: Attempt): Promise<void> {
    await database.query(HAND_BACK, [runId, attempt]);
  },

  async removeSettled(seconds: number, limit: number): Promise<number> {
    return (await database.execute(REMOVE_SETTLED, [seconds, limit])).rowCount ?? 0;
  },

  /** `where`: a condition on the row `d`. Returns run ids. */
  async replay(where: string, values: unknown[]): Promise<string[]> {
    const text = `update threadloom.webhook_deliveries d set ${REPLAY} where ${where} returning d.run_id`;
    return (await database.query<{ run_id: string }>(text, values)).map((row) => row.run_id);
  },
});

export type Deliveries = ReturnType<typeof createDeliveries>;
