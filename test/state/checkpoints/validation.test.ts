import * as vitest from "vitest";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { keysOf } from "../../helpers/encryption.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { pino } from "pino";
import { openTestDatabase } from "../../helpers/test-database.ts";

// The suite uses the test functions as globals.
Object.assign(globalThis, vitest);
const { deltaChannelHistoryTests, specTest } = await import("@langchain/langgraph-checkpoint-validation");

let fresh: FreshDatabase;
let database: Database;

const initializerWith = (keys: string[]) => ({
  checkpointerName: "Threadloom",
  async beforeAll() {
    fresh = await freshDatabase();
    database = openTestDatabase(fresh.connectionString, {
      poolSize: 2,
      encryption: { keys, metadataKeys: [] },
      applicationName: "validation",
    });
  },
  async afterAll() {
    await database.close();
    await fresh.drop();
  },
  /** The suite expects each one to be empty. */
  async createCheckpointer() {
    await database.query(
      "truncate threadloom.checkpoints, threadloom.checkpoint_writes, threadloom.checkpoint_contents",
    );
    return createCheckpointStorage({ database, logger: pino({ level: "silent" }) }).saver;
  },
});

const initializers = [
  ["", initializerWith([])],
  [", encrypted", initializerWith(keysOf("a key of a test, of 32 bytes ..."))],
] as const;

vitest.describe.each(initializers)("the official validation suite of checkpointers%s", (_, initializer) => {
  vitest.beforeAll(() => initializer.beforeAll());
  vitest.afterAll(() => initializer.afterAll());
  specTest({ ...initializer, beforeAll: undefined, afterAll: undefined });
  deltaChannelHistoryTests(initializer);
});
