import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { CreatedRun } from "../joining/results.ts";
import { toRunRecord } from "../record.ts";
import type { RunBody, RunRecord, ThreadlessRunBody } from "../schemas.ts";
import type { RunCreation } from "./creation.ts";
import { createRunGrants, requestedRun, type GrantedRequest, type Placement } from "./requests.ts";

export interface CreationManner {
  streamed?: boolean;
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface OnThreadManner extends CreationManner {
  eventStreaming?: boolean;
  turnsSeen?: number | undefined;
}

const placementOf = (body: ThreadlessRunBody): Placement =>
  body.thread_id === undefined
    ? { kind: "threadless", keep: body.on_completion === "keep" }
    : { kind: "thread", threadId: body.thread_id, createIfMissing: body.if_not_exists === "create" };

/** `streamed`: the creator reads all events. `turnsSeen`: see NewRun. */
export const createCreationService = (
  authorize: Authorize,
  database: Database,
  creation: RunCreation,
  processId: string,
) => {
  const grant = createRunGrants(authorize, database.encryption);

  return {
    async createOnThread(
      caller: Caller,
      threadId: string,
      body: RunBody,
      { streamed = false, ...manner }: OnThreadManner = {},
    ): Promise<CreatedRun> {
      const { rights, body: granted, ...run } = await grant(caller, body, threadId);
      const createIfMissing = granted.if_not_exists === "create";
      const readerId = streamed ? processId : null;
      const placement: Placement = { kind: "thread", threadId, createIfMissing };
      return await creation.create(rights, requestedRun(granted, placement, { ...run, ...manner, readerId }));
    },

    async createThreadless(
      caller: Caller,
      body: ThreadlessRunBody,
      { streamed = false, headers }: CreationManner = {},
    ): Promise<CreatedRun> {
      const { rights, body: granted, ...run } = await grant(caller, body, body.thread_id);
      const beside = { ...run, readerId: streamed ? processId : null, headers };
      return await creation.create(rights, requestedRun(granted, placementOf(granted), beside));
    },

    /** Creates all runs or none. */
    async createBatch(
      caller: Caller,
      bodies: ThreadlessRunBody[],
      { headers }: Pick<CreationManner, "headers"> = {},
    ): Promise<RunRecord[]> {
      const asked: GrantedRequest[] = [];
      for (const one of bodies) {
        const { rights, body, ...run } = await grant(caller, one, one.thread_id);
        asked.push({ rights, ...requestedRun(body, placementOf(body), { ...run, readerId: null, headers }) });
      }
      const rows = await creation.createAll(asked);
      return rows.map(toRunRecord);
    },
  };
};

export type CreationService = ReturnType<typeof createCreationService>;
