import { refusalOf } from "../../../http/errors.ts";
import type { DeliveryAccess } from "./event-sink.ts";

/** The error that clients of the first wire are given when they may read no more. */
export const lossOf = (reason: unknown): { error: string; message: string } => ({
  error: "AccessLost",
  message: refusalOf(reason)?.detail ?? "Nobody could say whether you may go on reading; try again.",
});

/** It has the id of the event before, so that who comes back with it misses nothing. */
export const closingEvent: NonNullable<DeliveryAccess["closingEvent"]> = (reason, after = -1) => ({
  seq: after,
  event: "error",
  data: JSON.stringify(lossOf(reason)),
});
