import type { Caller } from "../../../access/caller.ts";
import { forbidden } from "../../../platform/domain/errors.ts";
import { timestamp } from "../../../platform/lib/timestamps.ts";
import type { QueueRepository } from "./repository.ts";
import type { QueueRecord } from "./schemas.ts";

export interface QueueServiceParts {
  repository: QueueRepository;
  countSuspects(): Promise<number>;
  /** Undefined if this server executes no runs. */
  slots(): { server_id: string; max: number; active: number } | undefined;
}

export const createQueueService = ({ repository, countSuspects, slots }: QueueServiceParts) => ({
  async read(caller: Caller, signal?: AbortSignal): Promise<QueueRecord> {
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
