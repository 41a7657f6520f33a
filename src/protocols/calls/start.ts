import type { z } from "zod";
import type { Caller } from "../../access/caller.ts";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import { runBody, threadlessRunBody } from "../../api/runs/schemas.ts";
import type { RunService } from "../../api/runs/service.ts";
import { validated } from "../../http/validation.ts";
import type { JsonObject } from "../../platform/lib/json.ts";

/** Stored in the metadata of the run. */
export type Origin = "mcp" | "a2a" | "agui";

/** Fields of a run's metadata that a client of a protocol can't choose. */
export const ORIGIN = "origin";
export const TASK_ID = "task_id";

export interface Call {
  caller: Caller;
  origin: Origin;
  /** An assistant's or a graph's id. */
  assistantId: string;
  /** Undefined: the run gets a thread of its own, which is deleted with the run. */
  threadId: string | undefined;
  /** Set for a run that continues a task: the id of the task's first run. */
  taskRunId?: string | undefined;
  /** `input` or `command`, and further fields of the run's body. */
  body: Partial<Omit<z.input<typeof runBody>, "assistant_id" | "if_not_exists">>;
  /** `turns` of the task that the run continues: another run since then refuses this one as a `conflict`. */
  turnsSeen?: number | undefined;
  /** The creator reads all events. */
  streamed?: boolean;
  /** Headers for the graph's configuration. */
  headers?: Readonly<Record<string, string>> | undefined;
}

/** Creates the run of a call as the API does: same `Auth`, limits and webhooks. Throws the errors of the API. */
export const createStartCall =
  (creation: Pick<RunService["creation"], "createOnThread" | "createThreadless">) =>
  async (call: Call): Promise<CreatedRun> => {
    const {
      caller,
      origin,
      assistantId,
      threadId,
      taskRunId,
      turnsSeen,
      body,
      streamed = false,
      headers,
    } = call;
    const metadata: JsonObject = {
      ...body.metadata,
      [ORIGIN]: origin,
      ...(taskRunId === undefined ? {} : { [TASK_ID]: taskRunId }),
    };
    const asked = { ...body, assistant_id: assistantId, metadata };
    if (threadId === undefined) {
      const threadless = validated(threadlessRunBody, asked, "The run");
      return await creation.createThreadless(caller, threadless, { streamed, headers });
    }
    const onThread = validated(runBody, { ...asked, if_not_exists: "create" }, "The run");
    return await creation.createOnThread(caller, threadId, onThread, { streamed, turnsSeen, headers });
  };
