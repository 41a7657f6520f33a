import { toWireJson } from "../../state/values/wire-json.ts";
import type { Emit, StreamChunk } from "./modes.ts";
import { createSubgraphs, type GraphEnd, type WhenReadable } from "./protocol/subgraphs.ts";
import { nodesOfUpdate } from "./protocol/events.ts";

export const LIFECYCLE_MODES = ["updates", "tasks"] as const;

export type Failure = () => { error: string; message: string };

/**
 * Emits `lifecycle|<namespace>` `{event, namespace, tool_call_id?, error?}` (`LifecycleStreamEvent` of the
 * JavaScript SDK 1.15). Stateful: one per attempt.
 */
export const createLifecycle = (emit: Emit, whenReadable?: WhenReadable) => {
  let failure: Failure | undefined;
  const subgraphs = createSubgraphs(
    (path, event, { toolCallId }) =>
      emit(`lifecycle|${path.join("|")}`, () =>
        toWireJson({
          event,
          namespace: path,
          ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
          ...(event === "failed" && failure !== undefined && { error: failure() }),
        }),
      ),
    whenReadable,
  );
  return {
    note([namespace, mode, payload]: StreamChunk, show: () => void): void {
      if (mode === "values") subgraphs.begun(namespace);
      if (mode === "tasks") subgraphs.beforeTask(namespace, payload);
      show();
      if (mode === "tasks") subgraphs.afterTask(namespace, payload);
      if (mode === "updates") {
        subgraphs.noteCached(namespace, payload);
        for (const node of nodesOfUpdate(payload))
          subgraphs.noteUpdate(subgraphs.pathAround(namespace), node);
      }
    },
    hasOpenSubgraphs: subgraphs.isOpen,
    end(how: GraphEnd, why: Failure | undefined): void {
      failure = why;
      subgraphs.end(how);
    },
  };
};
