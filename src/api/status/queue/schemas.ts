import { z } from "zod";
import { uuid } from "../../../platform/domain/json-schemas.ts";

const count = z.int().nonnegative();
const oldestSeconds = z
  .number()
  .nullable()
  .describe("For how long the first of those waits that could have started; null: none could.");

/** Of all servers that share the tables. */
export const queueRecord = z
  .object({
    num_pending: count,
    num_scheduled: count.describe("Of those pending: runs that were asked for later."),
    num_running: count,
    num_suspects: count.describe(
      "Of those pending: runs that may have ended their servers, and wait to be executed alone.",
    ),
    oldest_seconds: oldestSeconds,
    is_complete: z
      .boolean()
      .describe("False: more runs wait than are looked at (50,000), and all figures are of those."),
    graphs: z
      .array(
        z.object({
          graph_id: z.string(),
          num_pending: count,
          num_running: count,
          oldest_seconds: oldestSeconds,
          is_hosted: z.boolean().describe("False: no server that lives executes runs of this graph."),
        }),
      )
      .describe("Of which runs wait or are executed, those with the most first; 100 at most."),
    threads: z
      .array(
        z.object({
          thread_id: uuid,
          graph_id: z.string(),
          num_pending: count,
          oldest_seconds: oldestSeconds,
        }),
      )
      .describe("On which runs wait, those with the most first; 50 at most."),
    servers: z
      .array(
        z.object({
          server_id: uuid,
          num_running: count,
          seen_at: z
            .string()
            .nullable()
            .describe("Its last sign of life; null: it has given none for an hour."),
          graph_ids: z.array(z.string()),
        }),
      )
      .describe(
        "That execute runs, or could: those that live, and dead ones whose runs are not taken over yet; 100 at most.",
      ),
    slots: z
      .object({ server_id: uuid, max: count, active: count })
      .nullable()
      .describe("Of the server that answers; null: it executes none."),
  })
  .meta({ id: "Queue" });
export type QueueRecord = z.output<typeof queueRecord>;
