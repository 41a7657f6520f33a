import type { CancelAction } from "../parts/cancel-dialog.tsx";
import type { Run } from "../parts/run.ts";
import { statusOf } from "../server/api-error.ts";
import type { Connection } from "../server/connection.tsx";
import type { PendingFilter } from "./queue-record.ts";

/** The limit of `/runs/cancel`. */
const CANCELLED_AT_ONCE = 1_000;
/** New runs may keep arriving. */
const ROUNDS_AT_MOST = 100;

/**
 * The API does not cancel by graph, so a search finds the runs; a run that starts in between continues.
 * @throws ApiError
 */
export const cancelPending = async (
  { search, request }: Pick<Connection, "search" | "request">,
  filter: PendingFilter,
  action: CancelAction,
): Promise<void> => {
  const path = `/runs/cancel?action=${action}`;
  if (filter.graph_id === undefined) {
    await request("POST", path, { ...filter, status: "pending" });
    return;
  }
  for (let round = 0; round < ROUNDS_AT_MOST; round += 1) {
    const { items } = await search<Pick<Run, "run_id">>("/runs/search", {
      ...filter,
      status: "pending",
      limit: CANCELLED_AT_ONCE,
      select: ["run_id"],
    });
    if (items.length === 0) return;
    try {
      await request("POST", path, { status: "pending", run_ids: items.map(({ run_id }) => run_id) });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }
};
