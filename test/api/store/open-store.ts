import { pino } from "pino";
import { openDatabase, type Database } from "../../../src/platform/database/database.ts";
import { DEFAULT_EXPIRY, type StoreExpiry } from "../../../src/graphs/project/expiry.ts";
import { createItems, type Items } from "../../../src/api/store/items.ts";
import { PostgresStore } from "../../../src/api/store/postgres-store.ts";
import { StoreRepository } from "../../../src/api/store/repository.ts";
import { createStoreService, type StoreService } from "../../../src/api/store/service.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { authorize, EVERY_ITEM } from "../../helpers/access.ts";

export const logger = pino({ level: "silent" });

export interface OpenStore {
  database: Database;
  repository: StoreRepository;
  items: Items;
  service: StoreService;
  store: PostgresStore;
  /** Moves the clock of every item with a time to live by this many minutes. */
  age(minutes: number): Promise<void>;
  empty(): Promise<void>;
  close(): Promise<void>;
}

export const openStore = async (expiry: StoreExpiry = DEFAULT_EXPIRY): Promise<OpenStore> => {
  const fresh = await freshDatabase();
  const database = openDatabase({
    connectionString: fresh.connectionString,
    poolSize: 4,
    applicationName: "store test",
    preparedStatements: true,
    logger,
  });
  const repository = new StoreRepository(database);
  const items = createItems({ repository, logger });
  return {
    database,
    repository,
    items,
    service: createStoreService({ repository, authorize, items, expiry }),
    store: new PostgresStore({ visibility: EVERY_ITEM, repository, items, expiry }),
    async age(minutes) {
      await database.query(
        "update threadloom.store_items set expires_at = expires_at - $1 * interval '1 minute'",
        [minutes],
      );
    },
    async empty() {
      await database.query("truncate threadloom.store_items cascade");
    },
    async close() {
      await database.close();
      await fresh.drop();
    },
  };
};
