import { toWireJson } from "../../../state/values/wire-json.ts";
import type { Emit, StreamChunk } from "../modes.ts";
import { INTERRUPTED_EVENT, PROTOCOL_EVENT_PREFIX } from "../wires.ts";
import {
  envelopeOf,
  publishCustom,
  publishUpdates,
  publishValues,
  type ProtocolParams,
  type PublishProtocolEvent,
} from "./events.ts";
import { createMessages } from "./messages.ts";
import { createSubgraphs, type GraphEnd, type OpenSubgraph, type WhenReadable } from "./subgraphs.ts";
import { publishTool } from "./tools.ts";
import { createTransformers, type TransformerFactories, type Transformers } from "./transformers.ts";

/**
 * Without `checkpoints`, which serializes the whole state again: the protocol needs only the small envelope
 * that comes with `values`.
 */
export const PROTOCOL_MODES = ["values", "updates", "messages", "tools", "custom", "tasks"] as const;

const placeOf = (task: readonly string[]): { graph: string[]; node: string | undefined } => {
  const graph = task.slice(0, -1);
  const [node] = (task.at(-1) ?? "").split(":");
  return { graph, node: node === "" ? undefined : node };
};

/** Stateful: one per attempt. `wholeCheckpoints`: the graph also streams the mode `checkpoints`. */
export const createProtocolConverter = (
  emit: Emit,
  wholeCheckpoints: boolean,
  whenReadable?: WhenReadable,
) => {
  const send = (
    method: string,
    namespace: readonly string[],
    data: () => unknown,
    node: string | undefined,
  ): void =>
    emit(PROTOCOL_EVENT_PREFIX + method, () => {
      const of: Omit<ProtocolParams, "data"> = { namespace, timestamp: Date.now(), ...(node && { node }) };
      try {
        return toWireJson({ ...of, data: data() });
      } catch {
        // A value that JSON can't represent fails only runs whose request asked for the value, not followed
        // runs.
        return toWireJson({ ...of, data: null });
      }
    });
  let transformers: Transformers | undefined;
  let settled: Promise<void> | undefined;
  const publish: PublishProtocolEvent = (method, namespace, data, node) => {
    if (transformers === undefined) return send(method, namespace, data, node);
    const made = data();
    if (transformers.pass(method, namespace, made, node)) send(method, namespace, () => made, node);
  };
  const messages = createMessages(
    emit,
    (namespace, data, ids, node) =>
      transformers?.pass("messages", namespace, { ...data, ...ids }, node) ?? true,
  );
  const subgraphs = createSubgraphs((path, event, { name, toolCallId }) => {
    const cause = event === "started" &&
      toolCallId !== undefined && { type: "toolCall", tool_call_id: toolCallId };
    publish("lifecycle", path, () => ({ event, graph_name: name, ...(cause && { cause }) }));
  }, whenReadable);
  /** LangGraph sends whole checkpoints after the values, but clients expect them before. */
  let waiting: { namespace: readonly string[]; publish: () => void } | undefined;
  const publishWaiting = (): void => {
    waiting?.publish();
    waiting = undefined;
  };
  const isOfWaiting = (namespace: readonly string[], mode: string): boolean =>
    mode === "checkpoints" && waiting?.namespace.join("|") === namespace.join("|");

  return {
    handler: messages.handler,
    transformBy(factories: TransformerFactories): void {
      transformers = createTransformers(factories, (method, namespace, data, node) =>
        send(method, namespace, () => data, node),
      );
    },
    /** Undefined without transformers. Rejects with their error. */
    settled: (): Promise<void> | undefined => settled,
    /** `task`: of a message or a tool. */
    convert([namespace = [], mode, payload]: StreamChunk, task: readonly string[] = namespace): void {
      if (!isOfWaiting(namespace, mode)) publishWaiting();
      switch (mode) {
        case "values": {
          const publishNow = (): void =>
            subgraphs.whenNamed(namespace, () => publishValues(publish, namespace, payload));
          if (!wholeCheckpoints) return publishNow();
          waiting = { namespace, publish: publishNow };
          return;
        }
        case "checkpoints": {
          // LangGraph sends no envelope for a checkpoint without values, such as the input's.
          const checkpoint = envelopeOf(payload);
          if (checkpoint !== undefined && (waiting !== undefined || !checkpoint.isWhole))
            subgraphs.whenNamed(namespace, () =>
              publish("checkpoints", namespace, () => checkpoint.envelope),
            );
          return publishWaiting();
        }
        case "updates": {
          subgraphs.noteCached(namespace, payload);
          const path = subgraphs.pathAround(namespace);
          for (const node of publishUpdates(publish, path, payload)) subgraphs.noteUpdate(path, node);
          return;
        }
        case "tasks":
          subgraphs.beforeTask(namespace, payload);
          publish("tasks", namespace, () => payload);
          return subgraphs.afterTask(namespace, payload);
        case "custom":
          return publishCustom(publish, subgraphs.pathAround(namespace), payload);
        case "messages":
          return messages.add(payload, subgraphs.pathAround(placeOf(task).graph));
        case "tools": {
          const { graph, node } = placeOf(task);
          return publishTool(publish, subgraphs.pathAround(graph), node, payload);
        }
      }
    },
    answered(interruptIds: readonly string[]): void {
      if (interruptIds.length > 0) publish("input.answered", [], () => ({ interrupt_ids: interruptIds }));
    },
    asked: (interrupts: readonly unknown[]): void =>
      emit(INTERRUPTED_EVENT, () => toWireJson(interrupts.map((interrupt) => subgraphs.placed(interrupt)))),
    reopen: (open: readonly OpenSubgraph[]): void => open.forEach(subgraphs.reopen),
    hasOpenSubgraphs: subgraphs.isOpen,
    end(how: GraphEnd): void {
      publishWaiting();
      messages.end(how === "failed");
      subgraphs.end(how);
      settled = transformers?.end(how === "failed");
      settled?.catch(() => undefined);
    },
  };
};
