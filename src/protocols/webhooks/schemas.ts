import { z } from "zod";
import { bodyOf, optional, page, sortOrder, uuid } from "../../platform/domain/json-schemas.ts";

/** Not part of the contract. */

export const DELIVERY_STATES = ["pending", "delivered", "failed"] as const;
const deliveryState = z.enum(DELIVERY_STATES);

export const webhookDelivery = z
  .object({
    run_id: uuid.describe("The run whose end is told; the receiver knows it as `webhook-id`."),
    thread_id: uuid,
    assistant_id: uuid,
    url: z.string(),
    run_status: z.string().describe("How the run ended, as the receiver is told."),
    run_ended_at: z.string(),
    state: deliveryState.describe("`failed`: it is not tried again, unless it is replayed."),
    failures: z.int().describe("How often it has failed since the end of the run, or the last replay."),
    next_attempt_at: z.string().nullable().describe("While it is pending."),
    give_up_at: z.string().nullable().describe("While it is pending."),
    last_attempt_at: z.string().nullable(),
    last_status: z.int().nullable().describe("What the receiver answered last; null if it did not."),
    last_error: z.string().nullable(),
    settled_at: z.string().nullable().describe("When it was delivered, or given up."),
  })
  .meta({ id: "WebhookDelivery" });
export type WebhookDelivery = z.output<typeof webhookDelivery>;

export const deliverySearchBody = bodyOf({
  state: optional(deliveryState),
  thread_id: optional(uuid),
  ...page,
  sort_order: sortOrder,
});
export type DeliverySearch = z.output<typeof deliverySearchBody>;

export const deliveryPath = z.object({ run_id: uuid });
