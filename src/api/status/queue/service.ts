import type { Caller } from "../../../access/caller.ts";
import { forbidden } from "../../../platform/domain/errors.ts";
import { timestamp } from "../../../platform/lib/timestamps.ts";
import type { QueueRepository } from "./repository.ts";
import type { QueueRecord } from "./schemas.ts";

export interface QueueServiceParts {
  repository: QueueRepository;
  /** Pending runs that wait to be executed alone. */
  countSuspects(): Promise<number>;
  /** The server that answers; undefined if it executes no runs. */
  slots(): { server_id: string; max: number; active: number } | undefined;
}

export const createQueueService = ({ repository, countSuspects, slots }: QueueServiceParts) => ({
  async read(caller: Caller, signal?: AbortSignal): Promise<QueueRecord> {
    // The figures count all users' runs, like those of /metrics.
    if (caller.kind === "user")
      throw forbidden("The queue of this server shows what everybody has: it needs an API key.");
    const waiting = await repository.waiting(signal);
    const servers = await repository.servers(signal);
    return {
      ...waiting,
      num_suspects: await countSuspects(),
      servers: servers.map(({ seen_at, ...server }) => ({
        ...server,
        seen_at: seen_at && timestamp(seen_at),
      })),
      slots: slots() ?? null,
    };
  },
});

export type QueueService = ReturnType<typeof createQueueService>;
