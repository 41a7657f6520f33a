import type { Authorize } from "../../access/authorize.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Signals } from "../../platform/database/signals.ts";
import type { Hub } from "../../engine/events/hub.ts";
import type { EventLog } from "../../engine/events/log.ts";
import { createTurns } from "../../engine/events/turns.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import { createCommandService } from "./commands/service.ts";
import { createThreadStreamService } from "./joining/service.ts";
import { createReadingService } from "./reading/service.ts";
import { createStreamingRepository } from "./repository.ts";

export interface StreamingServiceParts {
  database: Database;
  authorize: Authorize;
  hub: Hub;
  eventLog: Pick<EventLog, "named">;
  signals: Signals;
  runs: Pick<RunService, "creation">;
  threads: Pick<ThreadService, "states">;
}

/** Event streaming: commands to a thread, and what it tells. It holds nothing of its own: runs and threads do all of it. */
export const createStreamingService = (parts: StreamingServiceParts) => {
  const repository = createStreamingRepository(parts.database);
  const reading = createReadingService({ ...parts, repository });
  /** Of each WebSocket: what resolves when all commands that have come over it are answered. */
  const sockets = new Set<() => Promise<void>>();
  return {
    commands: createCommandService({
      authorize: parts.authorize,
      repository,
      eventLog: parts.eventLog,
      creation: parts.runs.creation,
      states: parts.threads.states,
    }),
    reading,
    /** A client has opened a WebSocket; call what it answers when that is closed. `settled`: its commands are answered. */
    addSocket(settled: () => Promise<void>): () => void {
      sockets.add(settled);
      return () => void sockets.delete(settled);
    },
    /** Resolves when the commands that have come over WebSockets so far are answered. */
    async settled(): Promise<void> {
      await Promise.all([...sockets].map((settled) => settled()));
    },
    /** What clients have open at the moment. */
    figures: () => ({ streams: reading.open(), sockets: sockets.size }),
    joining: createThreadStreamService({
      authorize: parts.authorize,
      repository,
      turns: createTurns(parts.database),
      hub: parts.hub,
      states: parts.threads.states,
    }),
  };
};

export type StreamingService = ReturnType<typeof createStreamingService>;
