import { createKeyRepository } from "../../access/keys/repository.ts";
import { createKeyService } from "../../access/keys/service.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { createKeysCommand } from "../keys/command.ts";
import { openOwnDatabase } from "../own-database.ts";
import type { CreateCommand } from "./command.ts";

export const createKeys: CreateCommand = ({ environment, write, note }) =>
  createKeysCommand({
    async withKeys(flags, work) {
      const logger = createLogger({ level: "warn", destination: { write: note } });
      const own = await openOwnDatabase(flags, environment, logger);
      try {
        return await work(createKeyService(createKeyRepository(own.database)));
      } finally {
        await own.close();
      }
    },
    write,
    note,
  });
