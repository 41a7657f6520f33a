import { z } from "zod";
import { uuid } from "../../../platform/domain/json-schemas.ts";

const count = z.int().nonnegative();
const oldestSeconds = z
  .number()
  .nullable()
  .describe("Age in seconds of the oldest pending run that could start; null if there is none.");

export const queueRecord = z
  .object({
    num_pending: count,
    num_scheduled: count.describe("Pending runs with a later start."),
    num_running: count,
    num_suspects: count.describe(
      "Pending runs that may have ended their servers and wait to be executed alone.",
    ),
    oldest_seconds: oldestSeconds,
    is_complete: z
      .boolean()
      .describe("False: more than 50,000 runs are pending, and the figures cover only 50,000 of them."),
    graphs: z
      .array(
        z.object({
          graph_id: z.string(),
          num_pending: count,
          num_running: count,
          oldest_seconds: oldestSeconds,
          is_hosted: z.boolean().describe("False: no living server executes runs of this graph."),
        }),
      )
      .describe("Graphs with unfinished runs, those with the most first; at most 100."),
    threads: z
      .array(
        z.object({
          thread_id: uuid,
          graph_id: z.string(),
          num_pending: count,
          oldest_seconds: oldestSeconds,
        }),
      )
      .describe("Threads with pending runs, those with the most first; at most 50."),
    servers: z
      .array(
        z.object({
          server_id: uuid,
          num_running: count,
          seen_at: z
            .string()
            .nullable()
            .describe("The server's last heartbeat; null after an hour without one."),
          graph_ids: z.array(z.string()),
        }),
      )
      .describe("Living servers, and dead ones that still hold runs; at most 100."),
    slots: z
      .object({ server_id: uuid, max: count, active: count })
      .nullable()
      .describe("The slots of the server that answers; null if it executes no runs."),
  })
  .meta({ id: "Queue" });
export type QueueRecord = z.output<typeof queueRecord>;
