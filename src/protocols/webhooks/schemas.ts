import { z } from "zod";
import { bodyOf, optional, page, sortOrder, uuid } from "../../platform/domain/json-schemas.ts";

/** Not part of the published contract. */

export const DELIVERY_STATES = ["pending", "delivered", "failed"] as const;
const deliveryState = z.enum(DELIVERY_STATES);

export const webhookDelivery = z
  .object({
    run_id: uuid.describe("The run; the receiver gets this id as `webhook-id`."),
    thread_id: uuid,
    assistant_id: uuid,
    url: z.string(),
    run_status: z.string().describe("How the run ended, in the words of the payload."),
    run_ended_at: z.string(),
    state: deliveryState.describe("`failed`: the server does not try again unless the delivery is replayed."),
    failures: z.int().describe("Failed tries since the end of the run or the last replay."),
    next_attempt_at: z.string().nullable().describe("While it is pending."),
    give_up_at: z.string().nullable().describe("While it is pending."),
    last_attempt_at: z.string().nullable(),
    last_status: z.int().nullable().describe("The status of the receiver's last answer; null without one."),
    last_error: z.string().nullable(),
    settled_at: z.string().nullable().describe("When the delivery succeeded or was given up."),
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
