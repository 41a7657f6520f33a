import { sql } from "kysely";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead, sqlOf } from "../../platform/database/queries.ts";
import { statement, type Fragment } from "../../platform/database/statement.ts";
import type { DeliveryRow as StoredDelivery } from "../../platform/database/tables.ts";
import type { Deliveries } from "../../engine/outbox/deliveries.ts";
import { userCountedAs } from "../../engine/queue/counted-as.ts";
import type { DeliverySearch, WebhookDelivery } from "./schemas.ts";

const SHOWN = [
  "delivery_id",
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
] as const satisfies readonly (keyof StoredDelivery)[];
/** Omits the payload, which may be megabytes. */
export type DeliveryRow = Pick<StoredDelivery, Exclude<(typeof SHOWN)[number], "state">> &
  Pick<WebhookDelivery, "state">;
const COLUMNS = SHOWN.map((column) => `d.${column}`).join(", ");

/** Another caller may have created a later thread with the same id. Index: threads_pkey. */
const ITS_THREAD = `from threadloom.threads thread where thread.thread_id = d.thread_id
        and thread.created_at <= d.run_created_at`;

/** Index: deliveries_pkey. */
const FIND = statement(
  { runId: "uuid", visible: "fragment" },
  (sql) =>
    `select ${COLUMNS} from threadloom.deliveries d where d.delivery_id = ${sql.runId} and d.kind = 'webhook' and ${sql.visible}`,
);

export interface DeliveryView {
  visibility: Visibility<"threads">;
  caller: Caller;
}

export const createDeliveryRepository = (database: Database, deliveries: Pick<Deliveries, "replay">) => {
  /**
   * An existing thread decides alone, because it may belong to another user by now. Without it, the run's user and
   * callers who see all threads see the delivery.
   */
  const deliveryVisible = ({ visibility, caller }: DeliveryView): Fragment =>
    visibility.on("thread.metadata", (condition, parameter) => {
      const ofThread = `exists (select ${ITS_THREAD} and (${condition}))`;
      const names = userCountedAs(database.encryption, caller);
      if (names.length === 0) return ofThread;
      return `${ofThread} or d.caller = any(${parameter(names)}::text[]) and not exists (select ${ITS_THREAD})`;
    });

  return {
    async find(view: DeliveryView, runId: string): Promise<DeliveryRow | undefined> {
      const [row] = await FIND.query<DeliveryRow>(database, { runId, visible: deliveryVisible(view) });
      return row && database.encryption.decrypted("deliveries", row);
    },

    /**
     * Reads one row more than `limit`. Indexes: deliveries_pkey, deliveries_failed,
     * deliveries_of_thread. Rejects like `boundedRead`.
     */
    async page(
      view: DeliveryView,
      { state, thread_id: threadId, limit, offset, sort_order: order = "desc" }: DeliverySearch,
      signal?: AbortSignal,
    ): Promise<DeliveryRow[]> {
      const clauses = [sql`d.kind = 'webhook'`, sqlOf(deliveryVisible(view))];
      // A literal, because the planner can't match a parameter with a partial index.
      if (state !== undefined) clauses.push(sql`d.state = ${sql.lit(state)}`);
      if (threadId !== undefined) clauses.push(sql`d.thread_id = ${threadId}::uuid`);
      const query = sql`
        select ${sql.raw(COLUMNS)} from threadloom.deliveries d where ${sql.join(clauses, sql` and `)}
        order by d.delivery_id ${sql.raw(order)} limit ${limit + 1}::int offset ${offset}::int`;
      const rows = await composedRead<DeliveryRow>(database.boundedRead, query, { signal });
      return database.encryption.decryptedRows("deliveries", rows);
    },

    replay: (view: DeliveryView, runId: string): Promise<boolean> =>
      deliveries.replay(runId, deliveryVisible(view)),
  };
};

export type DeliveryRepository = ReturnType<typeof createDeliveryRepository>;
