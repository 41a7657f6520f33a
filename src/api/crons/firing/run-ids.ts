import type { CronRow } from "../../../platform/database/tables.ts";
import { idFrom } from "../../../platform/lib/ids.ts";

/** If a cron is fired again for the same time, its run has the same ids, so it can't be stored twice. */
export const idsOf = (cron: Pick<CronRow, "cron_id" | "thread_id"> & { next_run_date: Date }) => ({
  runId: idFrom(cron.next_run_date, `run of ${cron.cron_id}`),
  threadId: cron.thread_id ?? idFrom(cron.next_run_date, `thread of ${cron.cron_id}`),
});
