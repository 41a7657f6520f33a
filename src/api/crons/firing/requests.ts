import type { JsonObject } from "../../../platform/lib/json.ts";
import type { DueCron } from "./due.ts";
import { idsOf } from "./run-ids.ts";
import { requestedRun, type Placement, type RequestedRun } from "../../runs/creation/requests.ts";
import { runBody, threadlessRunBody } from "../../runs/schemas.ts";

/**
 * The run has the cron's metadata and `cron_id`, as in the hosted service. Throws a `ZodError` for an outdated request.
 */
export const requestOf = (cron: DueCron): RequestedRun => {
  const asked = {
    ...(JSON.parse(cron.payload) as JsonObject),
    assistant_id: cron.assistant_id,
    metadata: { ...cron.metadata, cron_id: cron.cron_id },
  };
  const { runId, threadId } = idsOf(cron);
  const placement: Placement =
    cron.thread_id === null
      ? { kind: "threadless", keep: cron.on_run_completed === "keep", threadId }
      : { kind: "thread", threadId, createIfMissing: false };
  const body = placement.kind === "thread" ? runBody.parse(asked) : threadlessRunBody.parse(asked);
  return requestedRun(body, placement, {
    runId,
    authUser: cron.auth_user,
    caller: cron.caller,
    readerId: null,
  });
};
