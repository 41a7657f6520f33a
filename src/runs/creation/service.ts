import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { CreationRights } from "../../queue/sql/create.ts";
import type { CreatedRun } from "../joining/results.ts";
import { toRunRecord } from "../record.ts";
import type { RunBody, RunRecord, ThreadlessRunBody } from "../schemas.ts";
import type { RunCreation } from "./creation.ts";
import { requestedRun, type Placement } from "./requests.ts";

export interface CreationServiceParts {
  authorize: Authorize;
  creation: RunCreation;
  processId: string;
}

/** What a request says of a run beside its body. */
export interface CreationManner {
  streamed?: boolean;
  /** Those of its headers that the run's graph finds in its configuration. */
  headers?: Readonly<Record<string, string>> | undefined;
}

/** On a thread of the run's own, unless the body names one. */
const placementOf = (body: ThreadlessRunBody): Placement =>
  body.thread_id === undefined
    ? { kind: "threadless", keep: body.on_completion === "keep" }
    : { kind: "thread", threadId: body.thread_id, createIfMissing: body.if_not_exists === "create" };

/**
 * Creates runs. `streamed`: their creator reads their events from the first on. `eventStreaming`: the run was started by a
 * command of event streaming. `turnsSeen`: see NewRun; without the thread as it was seen there is a conflict.
 */
export const createCreationService = ({ authorize, creation, processId }: CreationServiceParts) => {
  /** Creating a run executes its assistant: who may not read that must not see through its runs what it does. */
  const rightsOf = async (caller: Caller): Promise<CreationRights> => ({
    threads: await authorize(caller, "threads", "create_run"),
    assistants: await authorize(caller, "assistants", "read"),
  });

  return {
    async createOnThread(
      caller: Caller,
      threadId: string,
      body: RunBody,
      {
        streamed = false,
        eventStreaming = false,
        turnsSeen,
        headers,
      }: CreationManner & {
        eventStreaming?: boolean;
        turnsSeen?: number | undefined;
      } = {},
    ): Promise<CreatedRun> {
      const createIfMissing = body.if_not_exists === "create";
      const placement: Placement = { kind: "thread", threadId, createIfMissing };
      const rights = await rightsOf(caller);
      return await creation.create(
        rights,
        requestedRun(body, placement, {
          readerId: streamed ? processId : null,
          eventStreaming,
          turnsSeen,
          headers,
        }),
      );
    },

    async createThreadless(
      caller: Caller,
      body: ThreadlessRunBody,
      { streamed = false, headers }: CreationManner = {},
    ): Promise<CreatedRun> {
      const rights = await rightsOf(caller);
      return await creation.create(
        rights,
        requestedRun(body, placementOf(body), { readerId: streamed ? processId : null, headers }),
      );
    },

    /** All of them or, if one is refused, none. */
    async createBatch(
      caller: Caller,
      bodies: ThreadlessRunBody[],
      { headers }: Pick<CreationManner, "headers"> = {},
    ): Promise<RunRecord[]> {
      const rows = await creation.createAll(
        await rightsOf(caller),
        bodies.map((body) => requestedRun(body, placementOf(body), { readerId: null, headers })),
      );
      return rows.map(toRunRecord);
    },
  };
};

export type CreationService = ReturnType<typeof createCreationService>;
