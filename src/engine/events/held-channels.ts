import type { RunChannel } from "./channel.ts";

/** For clients that were disconnected just before the end. */
const LINGER_SECONDS = 30;
const LINGERING_BYTES = 8 * 1024 * 1024;

/** The channels of runs that execute here, and for a while of runs that ended here. */
export const createHeldChannels = () => {
  const channels = new Map<string, RunChannel>();
  const lingering = new Map<RunChannel, NodeJS.Timeout>();
  /** Closed because their run ended, not because this process stops. */
  const ended = new WeakSet<RunChannel>();
  let lingeringBytes = 0;

  const drop = (channel: RunChannel): void => {
    if (channels.get(channel.runId) === channel) channels.delete(channel.runId);
  };
  const forget = (channel: RunChannel): void => {
    const timer = lingering.get(channel);
    if (timer === undefined) return;
    clearTimeout(timer);
    lingering.delete(channel);
    lingeringBytes -= channel.keptBytes;
    drop(channel);
  };

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
      forget(before);
    },

    /**
     * Keeps the channel for clients that resume. The oldest ones are dropped first, because the creator of a
     * queued run may not have begun to read it.
     */
    end(channel: RunChannel): void {
      ended.add(channel);
      channel.close();
      if (channel.keptBytes === 0 || channel.keptBytes > LINGERING_BYTES) return drop(channel);
      lingeringBytes += channel.keptBytes;
      for (const oldest of lingering.keys()) {
        if (lingeringBytes <= LINGERING_BYTES) break;
        forget(oldest);
      }
      const timer = setTimeout(() => forget(channel), LINGER_SECONDS * 1_000);
      timer.unref();
      lingering.set(channel, timer);
    },

    abandon(channel: RunChannel): void {
      channel.close();
      drop(channel);
    },

    close(): void {
      for (const timer of lingering.values()) clearTimeout(timer);
      lingering.clear();
      for (const channel of channels.values()) channel.close();
      channels.clear();
    },
  };
};

export type HeldChannels = ReturnType<typeof createHeldChannels>;
