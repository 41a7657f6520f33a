import { toWireJson } from "../../state/values/wire-json.ts";
import type { Emit, StreamChunk } from "./modes.ts";
import { createSubgraphs, type GraphEnd } from "./protocol/subgraphs.ts";
import { nodesOfUpdate } from "./protocol/states.ts";

/** Of the first wire: the mode `lifecycle`. `values` and these are what it is found out from. */
export const LIFECYCLE_MODES = ["updates", "tasks"] as const;

/** Why a graph within the root has failed, as clients see it. */
export type Failure = () => { error: string; message: string };

/**
 * Tells where a graph within that of the run starts or has ended: `lifecycle|<namespace>` `{event, namespace, tool_call_id?,
 * error?}` (`LifecycleStreamEvent` of the JavaScript SDK 1.15). It has a memory, so make one per attempt.
 */
export const createLifecycle = (emit: Emit) => {
  let failure: Failure | undefined;
  const subgraphs = createSubgraphs((path, event, { toolCallId }) =>
    emit(`lifecycle|${path.join("|")}`, () =>
      toWireJson({
        event,
        namespace: path,
        ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
        ...(event === "failed" && failure !== undefined && { error: failure() }),
      }),
    ),
  );
  return {
    /** A chunk of `graph.stream` with subgraphs; `show` tells it over the modes that were asked for. */
    note([namespace, mode, payload]: StreamChunk, show: () => void): void {
      if (mode === "values") subgraphs.begun(namespace);
      if (mode === "tasks") subgraphs.beforeTask(namespace, payload);
      show();
      if (mode === "tasks") subgraphs.afterTask(namespace, payload);
      if (mode === "updates")
        for (const node of nodesOfUpdate(payload))
          subgraphs.noteUpdate(subgraphs.pathAround(namespace), node);
    },
    end(how: GraphEnd, why: Failure | undefined): void {
      failure = why;
      subgraphs.end(how);
    },
  };
};
