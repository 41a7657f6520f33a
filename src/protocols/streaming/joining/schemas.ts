import { z } from "zod";
import { queryInteger, queryList, withKnownMode } from "../../../platform/domain/json-schemas.ts";

/** See service.ts. */
export const THREAD_STREAM_MODES = ["run_modes", "lifecycle", "state_update"] as const;
export type ThreadStreamMode = (typeof THREAD_STREAM_MODES)[number];

const modes = withKnownMode(queryList, THREAD_STREAM_MODES).describe(
  "run_modes (all events of the runs; the default), lifecycle (their beginnings and ends), state_update (updates of the state). Other modes beside them send nothing.",
);

/** The contract has `stream_modes`; clients send `stream_mode`. */
export const threadStreamQuery = z.object({
  stream_modes: modes,
  stream_mode: modes,
  last_event_id: queryInteger(0, Number.MAX_SAFE_INTEGER).describe(
    "Used if the request has no header Last-Event-ID. The header Location of a stream contains it.",
  ),
});

export const threadStreamHeaders = z.looseObject({
  "last-event-id": z
    .string()
    .optional()
    .describe("The last event that the client has received; - or -1 for all kept events."),
});
