/** Process entry of `npm run keys`: API keys of a deployment, whether its servers run or not. */
import { createKeyRepository } from "../access/keys/repository.ts";
import { createKeyService } from "../access/keys/service.ts";
import { createLogger } from "../lib/logger.ts";
import { createKeysCommand } from "./keys/command.ts";
import { openOwnDatabase } from "./own-database.ts";
import { runCommand } from "./run-command.ts";

const write = (text: string): void => void process.stdout.write(text);
/** A script reads the answer alone. */
const tell = (text: string): void => void process.stderr.write(text);

const logger = createLogger({ level: "warn", destination: { write: tell } });
const command = createKeysCommand({
  async withKeys(flags, work) {
    const own = await openOwnDatabase(flags, process.env, logger);
    try {
      return await work(createKeyService(createKeyRepository(own.database)));
    } finally {
      await own.close();
    }
  },
  write,
  tell,
});
process.exitCode = await runCommand(command, { argv: process.argv.slice(2), write, tell });
