import { openDatabase } from "../../../src/platform/database/database.ts";
import { createReadRoom } from "../../../src/http/large-answers.ts";
import { openSignals } from "../../../src/platform/database/signals.ts";
import { Hub } from "../../../src/engine/events/hub.ts";
import { createEventLog, type RunEvent } from "../../../src/engine/events/log.ts";
import { type ThreadReader, createTurns } from "../../../src/engine/events/readers/thread-reader.ts";
import { NO_FAULTS } from "../../../src/platform/domain/faults.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createRunRepository } from "../../../src/api/runs/repository.ts";
import { TEST_ENCRYPTION } from "../../helpers/encryption.ts";
import { listeningLogger } from "../../helpers/parts.ts";

export interface ReadEvent extends RunEvent {
  runId: string;
}

export const readUntil = async (
  reader: ThreadReader,
  isLast: (event: ReadEvent) => boolean,
): Promise<ReadEvent[]> => {
  const published: ReadEvent[] = [];
  for (;;) {
    const news = await reader.next();
    if (typeof news === "string") throw new Error(`The reader is ${news}.`);
    published.push(...news.events.map((event) => ({ ...event, runId: news.runId })));
    if (published.some(isLast)) return published;
  }
};

export const idsOf = (published: readonly ReadEvent[]): number[] =>
  published.map(({ threadSeq = -1 }) => threadSeq);

/** The hub of a process that executes nothing, on the database of a server. */
export const openHub = async (connectionString: string) => {
  const { logger } = listeningLogger();
  const database = openDatabase({
    connectionString,
    poolSize: 4,
    applicationName: "threadloom test",
    preparedStatements: true,
    encryption: TEST_ENCRYPTION,
    logger,
  });
  const processId = newId();
  const signals = await openSignals({ database, connectionString, processId, logger });
  const repository = createRunRepository(database);
  const hub = new Hub({
    eventLog: createEventLog(database),
    readRoom: createReadRoom(),
    turns: createTurns(database),
    signals,
    processId,
    phaseOf: (run) => repository.phaseOf(run, processId),
    faults: NO_FAULTS,
    logger,
  });
  return {
    hub,
    async close(): Promise<void> {
      hub.close();
      await signals.close();
      await database.close();
    },
  };
};
