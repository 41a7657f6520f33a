import { Command, InvalidArgumentError, Option } from "commander";
import { createAuthorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { createDeliveries } from "../../engine/outbox/deliveries.ts";
import { createDeliveryRepository } from "../../protocols/webhooks/repository.ts";
import { DELIVERY_STATES, deliveryPath, type WebhookDelivery } from "../../protocols/webhooks/schemas.ts";
import { createWebhookService, type WebhookService } from "../../protocols/webhooks/service.ts";
import { answeringJson, jsonLine, limitArgument } from "../flags.ts";
import { onDatabase, onOwnDatabase, type DatabaseFlags } from "../own-database.ts";
import { fieldsText, printable } from "../printable.ts";
import type { CommandSurroundings } from "../command.ts";

const runId = (text: string): string => {
  const parsed = deliveryPath.safeParse({ run_id: text });
  if (parsed.success) return parsed.data.run_id;
  throw new InvalidArgumentError("It is the id of a run.");
};

const EXAMPLES = `
Examples:
  $ threadloom webhooks list --state failed
  $ threadloom webhooks show 0199f3a0-0000-7000-8000-000000000000
  $ threadloom webhooks replay 0199f3a0-0000-7000-8000-000000000000

A delivery has the id of its run. A running server sends a replayed delivery within two seconds; otherwise the next
server that starts sends it. Exit codes: 0 done, 1 not done, 2 wrong usage.`;

const lineOf = (delivery: WebhookDelivery): string =>
  [
    delivery.run_id,
    delivery.state.padEnd(9),
    delivery.next_attempt_at ?? delivery.settled_at ?? "",
    `failures=${delivery.failures}`,
    printable(delivery.url),
    ...(delivery.last_error === null ? [] : [delivery.last_error]),
  ].join("  ");

const textOf = (delivery: WebhookDelivery): string =>
  fieldsText(Object.entries(delivery).map(([field, value]) => [field, String(value ?? "-")]));

const answering = (command: Command): Command => answeringJson(onDatabase(command));

export const create = (
  surroundings: Pick<CommandSurroundings, "environment" | "write" | "note">,
  withDatabase = onOwnDatabase(surroundings),
): Command => {
  const { write, note } = surroundings;
  const withWebhooks = <Result>(
    flags: DatabaseFlags,
    work: (webhooks: WebhookService) => Promise<Result>,
  ): Promise<Result> =>
    withDatabase(flags, (database) => {
      const repository = createDeliveryRepository(database, createDeliveries(database));
      // Running servers poll for due deliveries themselves.
      return work(createWebhookService(createAuthorize(), repository, () => undefined));
    });
  const webhooks = new Command("webhooks").description(
    "Shows the deliveries of webhooks, and sends them again.",
  );
  webhooks.addHelpText("after", EXAMPLES);

  answering(webhooks.command("list"))
    .description("Lists deliveries, newest runs first.")
    .addOption(new Option("--state <state>", "only those").choices(DELIVERY_STATES))
    .option("--limit <number>", "the maximum number (default: 100)", limitArgument)
    .action(async (flags: DatabaseFlags & { state?: (typeof DELIVERY_STATES)[number]; limit?: number }) => {
      const search = { state: flags.state, limit: flags.limit ?? 100, offset: 0 };
      const found = await withWebhooks(flags, (service) =>
        service.search(THE_SERVER, { ...search, thread_id: undefined, sort_order: undefined }),
      );
      if (flags.json) return write(jsonLine(found.deliveries));
      for (const delivery of found.deliveries) write(`${lineOf(delivery)}\n`);
      if (found.deliveries.length === 0) note("There are none.\n");
      if (found.next !== undefined) note("There are more. Use a larger --limit.\n");
    });

  answering(webhooks.command("show"))
    .description("Shows one.")
    .argument("<run>", "the id of its run", runId)
    .action(async (id: string, flags: DatabaseFlags) => {
      const delivery = await withWebhooks(flags, (service) => service.get(THE_SERVER, id));
      write(flags.json ? jsonLine(delivery) : textOf(delivery));
    });

  answering(webhooks.command("replay"))
    .description("Sends a delivery again with the same id, in any state.")
    .argument("<run>", "the id of its run", runId)
    .action(async (id: string, flags: DatabaseFlags) => {
      const delivery = await withWebhooks(flags, (service) => service.replay(THE_SERVER, id));
      if (flags.json) write(jsonLine(delivery));
      else note(`The webhook of run ${delivery.run_id} will be sent again.\n`);
    });
  return webhooks;
};
