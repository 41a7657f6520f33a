import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import type { WebhookDeliveryRow } from "../../platform/database/tables.ts";
import type { Deliveries } from "../../engine/outbox/deliveries.ts";
import { userCountedAs } from "../../engine/queue/counted-as.ts";
import type { DeliverySearch } from "./schemas.ts";

const SHOWN = [
  "run_id",
  "thread_id",
  "assistant_id",
  "url",
  "run_status",
  "run_ended_at",
  "state",
  "failures",
  "due_at",
  "give_up_at",
  "last_attempt_at",
  "last_status",
  "last_error",
  "settled_at",
] as const satisfies readonly (keyof WebhookDeliveryRow)[];
/** Omits the payload, which may be megabytes. */
export type DeliveryRow = Pick<WebhookDeliveryRow, (typeof SHOWN)[number]>;
const COLUMNS = SHOWN.map((column) => `d.${column}`).join(", ");

/** Another caller may have created a later thread with the same id. Index: threads_pkey. */
const ITS_THREAD = `from threadloom.threads thread where thread.thread_id = d.thread_id
        and thread.created_at <= d.run_created_at`;

export interface DeliveryView {
  visibility: Visibility<"threads">;
  caller: Caller;
}

export const createDeliveryRepository = (database: Database, deliveries: Pick<Deliveries, "replay">) => {
  /**
   * A delivery is visible with its thread. Without the thread, the run's user sees it, and a caller who sees all
   * threads. An existing thread alone decides, because it may belong to another user by now.
   */
  const deliveryVisible = ({ visibility, caller }: DeliveryView, values: unknown[]): string =>
    visibility.condition("thread.metadata", values, (condition) => {
      const ofThread = `exists (select ${ITS_THREAD} and (${condition}))`;
      const names = userCountedAs(database.encryption, caller);
      if (names.length === 0) return ofThread;
      return `${ofThread} or d.caller = any($${values.push(names)}::text[]) and not exists (select ${ITS_THREAD})`;
    });

  return {
    /** Index: webhook_deliveries_pkey. */
    async find(view: DeliveryView, runId: string): Promise<DeliveryRow | undefined> {
      const values: unknown[] = [runId];
      const visible = deliveryVisible(view, values);
      const text = `select ${COLUMNS} from threadloom.webhook_deliveries d where d.run_id = $1 and ${visible}`;
      const [row] = await database.query<DeliveryRow>(text, values);
      return row && database.encryption.decrypted("webhook_deliveries", row);
    },

    /**
     * Reads one row more than `limit`. Indexes: webhook_deliveries_pkey, webhook_deliveries_failed,
     * webhook_deliveries_of_thread. Rejects like `boundedRead`.
     */
    async page(
      view: DeliveryView,
      { state, thread_id: threadId, limit, offset, sort_order: order }: DeliverySearch,
      signal?: AbortSignal,
    ): Promise<DeliveryRow[]> {
      const values: unknown[] = [limit + 1, offset];
      const clauses = [deliveryVisible(view, values)];
      // A literal, because the planner can't match a parameter with a partial index.
      if (state !== undefined) clauses.push(`d.state = '${state}'`);
      if (threadId !== undefined) clauses.push(`d.thread_id = $${values.push(threadId)}::uuid`);
      const rows = await database.boundedRead<DeliveryRow>(
        `select ${COLUMNS} from threadloom.webhook_deliveries d where ${clauses.join(" and ")}
       order by d.run_id ${order ?? "desc"} limit $1::int offset $2::int`,
        values,
        signal,
      );
      return database.encryption.decryptedRows("webhook_deliveries", rows);
    },

    async replay(view: DeliveryView, runId: string): Promise<boolean> {
      const values: unknown[] = [runId];
      const where = `d.run_id = $1 and ${deliveryVisible(view, values)}`;
      return (await deliveries.replay(where, values)).length > 0;
    },
  };
};

export type DeliveryRepository = ReturnType<typeof createDeliveryRepository>;
