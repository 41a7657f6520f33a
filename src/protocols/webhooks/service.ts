import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { deliveryNotFound } from "../../platform/domain/errors.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import { shownStatus } from "./sender.ts";
import type { DeliveryRepository, DeliveryRow } from "./repository.ts";
import type { DeliverySearch, WebhookDelivery } from "./schemas.ts";

const toDelivery = ({ delivery_id: _, due_at, give_up_at, ...row }: DeliveryRow): WebhookDelivery => {
  const isPending = row.state === "pending";
  return {
    ...row,
    run_status: shownStatus(row.run_status),
    run_ended_at: timestamp(row.run_ended_at),
    next_attempt_at: isPending ? timestamp(due_at) : null,
    give_up_at: isPending ? timestamp(give_up_at) : null,
    last_attempt_at: row.last_attempt_at && timestamp(row.last_attempt_at),
    settled_at: row.settled_at && timestamp(row.settled_at),
  };
};

/**
 * Readers of a thread see the deliveries of its runs; callers who may change the thread may replay them. After its
 * deletion, deliveries belong to the run's user.
 */
export const createWebhookService = (
  authorize: Authorize,
  repository: DeliveryRepository,
  onReplayed: () => void,
) => {
  const get = async (caller: Caller, runId: string): Promise<WebhookDelivery> => {
    const visibility = await authorize(caller, "threads", "read", { run_id: runId });
    const row = await repository.find({ visibility, caller }, runId);
    if (row === undefined) throw deliveryNotFound(runId);
    return toDelivery(row);
  };

  return {
    /** Throws `deliveryNotFound`. */
    get,

    /** `next`: undefined on the last page. */
    async search(
      caller: Caller,
      search: DeliverySearch,
      signal?: AbortSignal,
    ): Promise<{ deliveries: WebhookDelivery[]; next: number | undefined }> {
      const { limit, offset } = search;
      const visibility = await authorize(caller, "threads", "search", { limit, offset });
      const found = await repository.page({ visibility, caller }, search, signal);
      return {
        deliveries: found.slice(0, search.limit).map(toDelivery),
        next: found.length > search.limit ? search.offset + search.limit : undefined,
      };
    },

    /** Keeps the id and works in any state. Throws `deliveryNotFound`. */
    async replay(caller: Caller, runId: string): Promise<WebhookDelivery> {
      const visibility = await authorize(caller, "threads", "update", { metadata: {} });
      const view = { visibility, caller };
      if (!(await repository.replay(view, runId))) throw deliveryNotFound(runId);
      const row = await repository.find(view, runId);
      onReplayed();
      if (row === undefined) throw deliveryNotFound(runId);
      return toDelivery(row);
    },
  };
};

export type WebhookService = ReturnType<typeof createWebhookService>;
