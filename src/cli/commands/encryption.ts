import { createLogger } from "../../platform/lib/logger.ts";
import { createEncryptionCommand } from "../encryption/command.ts";
import { openOwnDatabase } from "../own-database.ts";
import type { CreateCommand } from "./command.ts";

export const createEncryption: CreateCommand = ({ environment, write, note }) =>
  createEncryptionCommand({
    async withEncrypted(flags, work) {
      const logger = createLogger({ level: "warn", destination: { write: note } });
      const own = await openOwnDatabase(flags, environment, logger);
      try {
        return await work(own.database);
      } finally {
        await own.close();
      }
    },
    write,
    note,
  });
