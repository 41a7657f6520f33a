import { THE_SERVER } from "../../access/caller.ts";
import { createDueCrons } from "../../api/crons/firing/due.ts";
import { createFiring, type FiringParts } from "../../api/crons/firing/firing.ts";
import { createScheduler } from "../../api/crons/firing/scheduler.ts";
import { createCronRepository } from "../../api/crons/repository.ts";
import { createCronSearcher } from "../../api/crons/search.ts";
import { createCronService, type CronServiceParts } from "../../api/crons/service.ts";
import type { Foundation } from "./foundation.ts";

interface CronParts extends Pick<FiringParts, "storeRuns" | "holdRuns" | "faults" | "logger"> {
  foundation: Foundation;
  checkWebhook: CronServiceParts["checkWebhook"];
}

export const createCrons = async ({
  foundation,
  storeRuns,
  holdRuns,
  checkWebhook,
  faults,
  logger,
}: CronParts) => {
  const { config, database, authorize, graphs } = foundation;
  const run = {
    ...{ assistant_id: "", run_id: "", status: "pending" as const },
    ...{ metadata: {}, kwargs: {} },
  };
  const rights = {
    threads: await authorize(THE_SERVER, "threads", "create_run", run),
    assistants: await authorize(THE_SERVER, "assistants", "read", { assistant_id: "" }),
  };
  const due = createDueCrons(database, graphs.ids);
  const firing = createFiring({ database, due, storeRuns, holdRuns, rights, faults, logger });
  const scheduler = createScheduler({ firing, logger });
  const crons = createCronService({
    database,
    authorize,
    repository: createCronRepository(database),
    searcher: createCronSearcher(database),
    recursionLimitMax: config.recursionLimitMax,
    cronsPerCaller: config.cronsPerCaller,
    keyFactor: config.keyFactor,
    checkWebhook,
    onChanged: () => scheduler.wake(),
  });
  return { crons, scheduler };
};
