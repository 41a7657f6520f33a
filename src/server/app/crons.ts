import { THE_SERVER } from "../../access/caller.ts";
import { createDueCrons } from "../../api/crons/firing/due.ts";
import { createFiring } from "../../api/crons/firing/firing.ts";
import { createScheduler } from "../../api/crons/firing/scheduler.ts";
import { createCronRepository, createCronSearcher } from "../../api/crons/repository.ts";
import { createCronService } from "../../api/crons/service.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { Worker } from "../../engine/worker/worker.ts";
import type { Foundation } from "./foundation.ts";
import type { Webhooks } from "./webhooks.ts";

export const createCrons = async (
  foundation: Foundation,
  { checkWebhook }: Webhooks,
  runs: RunService,
  worker: Worker,
) => {
  const { config, database, authorize, graphs, faults, logger } = foundation;
  const run = {
    ...{ assistant_id: "", run_id: "", status: "pending" as const },
    ...{ metadata: {}, kwargs: {} },
  };
  const rights = {
    threads: await authorize(THE_SERVER, "threads", "create_run", run),
    assistants: await authorize(THE_SERVER, "assistants", "read", { assistant_id: "" }),
  };
  const due = createDueCrons(database, graphs.ids);
  const firing = createFiring({
    database,
    due,
    storeRuns: runs.storeScheduled,
    holdRuns: () => worker.hold(),
    rights,
    faults,
    logger,
  });
  const scheduler = createScheduler(firing, logger);
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
