import { z } from "zod";
import { queryInteger, queryList } from "../../../platform/domain/json-schemas.ts";

/** See service.ts. */
export const THREAD_STREAM_MODES = ["run_modes", "lifecycle", "state_update"] as const;
export type ThreadStreamMode = (typeof THREAD_STREAM_MODES)[number];

const modes = queryList.describe(
  "run_modes (what its runs tell; the default), lifecycle (that they begin and end), state_update (states that were written by hand). Others tell nothing.",
);

/** The contract has `stream_modes`; clients send `stream_mode`. */
export const threadStreamQuery = z.object({
  stream_modes: modes,
  stream_mode: modes,
  last_event_id: queryInteger(0, Number.MAX_SAFE_INTEGER).describe(
    "Counts where there is no header Last-Event-ID. The header Location of a stream has it.",
  ),
});

export const threadStreamHeaders = z.looseObject({
  "last-event-id": z
    .string()
    .optional()
    .describe("The last event that the client has; - or -1 for all that is kept."),
});
