import { timestamp } from "../../platform/lib/timestamps.ts";
import { shownStatus } from "./payload.ts";
import type { DeliveryRow } from "./repository.ts";
import type { WebhookDelivery } from "./schemas.ts";

export const toDelivery = (row: DeliveryRow): WebhookDelivery => {
  const isPending = row.state === "pending";
  return {
    run_id: row.run_id,
    thread_id: row.thread_id,
    assistant_id: row.assistant_id,
    url: row.url,
    run_status: shownStatus(row.run_status),
    run_ended_at: timestamp(row.run_ended_at),
    state: row.state,
    failures: row.failures,
    next_attempt_at: isPending ? timestamp(row.due_at) : null,
    give_up_at: isPending ? timestamp(row.give_up_at) : null,
    last_attempt_at: row.last_attempt_at && timestamp(row.last_attempt_at),
    last_status: row.last_status,
    last_error: row.last_error,
    settled_at: row.settled_at && timestamp(row.settled_at),
  };
};
