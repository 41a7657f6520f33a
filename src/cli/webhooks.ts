/** Process entry of `npm run webhooks`: what became of the webhooks of runs, whether servers run or not. */
import { createAuthorize } from "../access/authorize.ts";
import { createLogger } from "../lib/logger.ts";
import { createDeliveries } from "../outbox/deliveries.ts";
import { createDeliveryRepository } from "../webhooks/repository.ts";
import { createWebhookService } from "../webhooks/service.ts";
import { openOwnDatabase } from "./own-database.ts";
import { runCommand } from "./run-command.ts";
import { createWebhooksCommand } from "./webhooks/command.ts";

const write = (text: string): void => void process.stdout.write(text);
/** A script reads the answer alone. */
const tell = (text: string): void => void process.stderr.write(text);

const logger = createLogger({ level: "warn", destination: { write: tell } });
const command = createWebhooksCommand({
  async withWebhooks(flags, work) {
    const own = await openOwnDatabase(flags, process.env, logger);
    try {
      const repository = createDeliveryRepository(own.database, createDeliveries(own.database));
      // Servers look for what is due by themselves.
      return await work(
        createWebhookService({ authorize: createAuthorize(), repository, onReplayed: () => undefined }),
      );
    } finally {
      await own.close();
    }
  },
  write,
  tell,
});
process.exitCode = await runCommand(command, { argv: process.argv.slice(2), write, tell });
