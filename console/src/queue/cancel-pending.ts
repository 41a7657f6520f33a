import type { CancelAction } from "../parts/cancel-dialog.tsx";
import type { Run } from "../parts/run.ts";
import { statusOf, type Connection } from "../server/connection.tsx";
import type { PendingFilter } from "./queue-record.ts";

/** Of one request: what `/runs/cancel` takes. */
const CANCELLED_AT_ONCE = 1_000;
/** Runs that come meanwhile are not chased for ever. */
const ROUNDS_AT_MOST = 100;

/**
 * Cancels runs that wait. By their graph they are found first, since the API cancels by thread or id; one that starts between the two
 * goes on.
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
      // None of them waits any more.
      if (statusOf(error) !== 404) throw error;
    }
  }
};
