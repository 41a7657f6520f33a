import { LRUCache } from "lru-cache";
import type { RunChannel } from "./channel.ts";

/** For clients that were disconnected just before the end. */
const LINGER_SECONDS = 30;
const LINGERING_CHARACTERS = 8 * 1024 * 1024;

/** Channels of runs that execute here, or ended here a moment ago. */
export const createHeldChannels = () => {
  const channels = new Map<string, RunChannel>();
  /** Closed because their run ended, not because this process stops. */
  const ended = new WeakSet<RunChannel>();

  const drop = (channel: RunChannel): void => {
    if (channels.get(channel.runId) === channel) channels.delete(channel.runId);
  };
  const lingering = new LRUCache<RunChannel, RunChannel>({
    maxSize: LINGERING_CHARACTERS,
    ttl: LINGER_SECONDS * 1_000,
    ttlAutopurge: true,
    dispose: drop,
  });

  return {
    get: (runId: string): RunChannel | undefined => channels.get(runId),

    holds(threadId: string, runId: string, userId?: string): boolean {
      const channel = channels.get(runId);
      return channel?.threadId === threadId && (userId === undefined || channel.userId === userId);
    },

    runIdsOf: (threadId: string): string[] =>
      [...channels.values()].filter((channel) => channel.threadId === threadId).map(({ runId }) => runId),

    hasEnded: (channel: RunChannel): boolean => ended.has(channel),

    hold(channel: RunChannel): void {
      channels.set(channel.runId, channel);
    },

    supersede(runId: string): void {
      const before = channels.get(runId);
      if (before === undefined) return;
      before.close();
      lingering.delete(before);
    },

    /** Drops the oldest channels first, because the creator of a queued run may not have begun to read. */
    end(channel: RunChannel): void {
      ended.add(channel);
      channel.close();
      if (channel.keptCharacters === 0 || channel.keptCharacters > LINGERING_CHARACTERS) return drop(channel);
      lingering.set(channel, channel, { size: channel.keptCharacters });
    },

    abandon(channel: RunChannel): void {
      channel.close();
      drop(channel);
    },

    close(): void {
      lingering.clear();
      for (const channel of channels.values()) channel.close();
      channels.clear();
    },
  };
};

export type HeldChannels = ReturnType<typeof createHeldChannels>;
