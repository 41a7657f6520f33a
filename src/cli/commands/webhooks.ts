import { createAuthorize } from "../../access/authorize.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { createDeliveries } from "../../engine/outbox/deliveries.ts";
import { createDeliveryRepository } from "../../protocols/webhooks/repository.ts";
import { createWebhookService } from "../../protocols/webhooks/service.ts";
import { openOwnDatabase } from "../own-database.ts";
import { createWebhooksCommand } from "../webhooks/command.ts";
import type { CreateCommand } from "./command.ts";

export const createWebhooks: CreateCommand = ({ environment, write, note }) =>
  createWebhooksCommand({
    async withWebhooks(flags, work) {
      const logger = createLogger({ level: "warn", destination: { write: note } });
      const own = await openOwnDatabase(flags, environment, logger);
      try {
        const repository = createDeliveryRepository(own.database, createDeliveries(own.database));
        // Running servers poll for due deliveries themselves.
        return await work(createWebhookService(createAuthorize(), repository, () => undefined));
      } finally {
        await own.close();
      }
    },
    write,
    note,
  });
