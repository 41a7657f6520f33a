import type { Authorize } from "../../access/authorize.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Signals } from "../../platform/database/signals.ts";
import type { Hub } from "../../engine/events/hub.ts";
import type { Room } from "../../http/room.ts";
import type { EventLog } from "../../engine/events/log.ts";
import { createTurns } from "../../engine/events/readers/thread-reader.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import { createCommandService } from "./commands.ts";
import { createThreadStreamService } from "./joining.ts";
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
  /** Counts large answers over WebSockets. */
  readRoom: Room;
}

export const createStreamingService = (parts: StreamingServiceParts) => {
  const repository = createStreamingRepository(parts.database);
  const reading = createReadingService(parts.authorize, repository, parts.hub, parts.signals);
  const sockets = new Set<() => Promise<void>>();
  return {
    command: createCommandService({ ...parts, ...parts.runs, ...parts.threads, repository }),
    reading,
    readRoom: parts.readRoom,
    /**
     * `settled` resolves when the WebSocket's commands are answered. Call the returned function when the WebSocket
     * closes.
     */
    addSocket(settled: () => Promise<void>): () => void {
      sockets.add(settled);
      return () => void sockets.delete(settled);
    },
    /** Waits for commands received over WebSockets so far. */
    async settled(): Promise<void> {
      await Promise.all([...sockets].map((settled) => settled()));
    },
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
