import { refusalOf } from "../../../http/errors.ts";
import type { DeliveryAccess } from "./event-sink.ts";

export const lossOf = (reason: unknown): { error: string; message: string } => ({
  error: "AccessLost",
  message:
    refusalOf(reason)?.detail ?? "The server could not check whether you may go on reading; try again.",
});

/** Has the id of the previous event, so that a resuming client misses nothing. */
export const closingEvent: NonNullable<DeliveryAccess["closingEvent"]> = (reason, after = -1) => ({
  seq: after,
  event: "error",
  data: JSON.stringify(lossOf(reason)),
});
