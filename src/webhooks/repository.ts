import type { Visibility } from "../access/visibility.ts";
import type { Database } from "../database/database.ts";
import type { WebhookDeliveryRow } from "../database/tables.ts";
import type { Deliveries } from "../outbox/deliveries.ts";
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
/** All but what the receiver is sent, which may be megabytes. */
export type DeliveryRow = Pick<WebhookDeliveryRow, (typeof SHOWN)[number]>;
const COLUMNS = SHOWN.map((column) => `d.${column}`).join(", ");

/**
 * A delivery, the row `d`, is visible with its run's thread. One whose thread is gone, as that of a threadless run mostly
 * is, belongs to nobody any more: only who sees every thread sees it. Nor is it of a thread that was made later under the
 * same id, by whoever knew that. Index: threads_pkey.
 */
const deliveryVisible = (visibility: Visibility<"threads">, values: unknown[]): string =>
  visibility.condition(
    "thread.metadata",
    values,
    (condition) => `exists (
      select from threadloom.threads thread where thread.thread_id = d.thread_id
        and thread.created_at <= d.run_created_at and (${condition}))`,
  );

/** What of the outbox callers may see and send again. */
export const createDeliveryRepository = (database: Database, deliveries: Pick<Deliveries, "replay">) => ({
  /** Index: webhook_deliveries_pkey. */
  async find(visibility: Visibility<"threads">, runId: string): Promise<DeliveryRow | undefined> {
    const values: unknown[] = [runId];
    const visible = deliveryVisible(visibility, values);
    const text = `select ${COLUMNS} from threadloom.webhook_deliveries d where d.run_id = $1 and ${visible}`;
    return (await database.query<DeliveryRow>(text, values))[0];
  },

  /**
   * In the order of the runs' ids, which is that of their creation; one row more than was asked for. Indexes:
   * webhook_deliveries_pkey, webhook_deliveries_failed, webhook_deliveries_of_thread. Rejects like `boundedRead`.
   */
  async page(
    visibility: Visibility<"threads">,
    { state, thread_id: threadId, limit, offset, sort_order: order }: DeliverySearch,
    signal?: AbortSignal,
  ): Promise<DeliveryRow[]> {
    const values: unknown[] = [limit + 1, offset];
    const clauses = [deliveryVisible(visibility, values)];
    // As a literal, one of three: the planner can't know that a parameter is what a partial index is about.
    if (state !== undefined) clauses.push(`d.state = '${state}'`);
    if (threadId !== undefined) clauses.push(`d.thread_id = $${values.push(threadId)}::uuid`);
    return await database.boundedRead<DeliveryRow>(
      `select ${COLUMNS} from threadloom.webhook_deliveries d where ${clauses.join(" and ")}
       order by d.run_id ${order ?? "desc"} limit $1::int offset $2::int`,
      values,
      signal,
    );
  },

  /** False if it is not there, or hidden. */
  async replay(visibility: Visibility<"threads">, runId: string): Promise<boolean> {
    const values: unknown[] = [runId];
    const where = `d.run_id = $1 and ${deliveryVisible(visibility, values)}`;
    return (await deliveries.replay(where, values)).length > 0;
  },
});

export type DeliveryRepository = ReturnType<typeof createDeliveryRepository>;
