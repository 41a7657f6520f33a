/**
 * From 1.7 on, LangGraph's chunks of messages and tools name only a graph; before, they name its task. Metadata of
 * callbacks name the task in all releases.
 */

import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { isObject } from "../../platform/lib/json.ts";
import type { StreamChunk } from "./modes.ts";

/** Stands for the id of a tool that code calls, without a model. */
const NO_ID = "";

type Metadata = Readonly<Record<string, unknown>>;

/** The namespace of the task, as LangGraph joins it. */
export const taskIn = ({ langgraph_checkpoint_ns, checkpoint_ns }: Metadata): string | undefined => {
  const task = langgraph_checkpoint_ns ?? checkpoint_ns;
  return typeof task === "string" && task !== "" ? task : undefined;
};

/** `awaitHandlers`: LangGraph's own handler must run later. */
class ToolCallsHandler extends BaseCallbackHandler {
  override name = "ThreadloomToolCalls";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreChain = true;
  override ignoreRetriever = true;

  constructor(private readonly onStart: (toolCallId: string, task: string) => void) {
    super();
  }

  override handleToolStart(
    _tool: unknown,
    _input: string,
    _runId: string,
    _parentRunId?: string,
    _tags?: string[],
    metadata: Metadata = {},
    _runName?: string,
    toolCallId?: string,
  ): void {
    const task = taskIn(metadata);
    if (task !== undefined) this.onStart(toolCallId ?? NO_ID, task);
  }
}

/** Stateful: one per attempt. */
export const createOrigins = () => {
  /** By tool call id. Calls that run at once may have the same. */
  const tasksOfCalls = new Map<string, string[]>();

  const ofCall = (graph: string, id: string, isOver: boolean): string | undefined => {
    const tasks = tasksOfCalls.get(id) ?? [];
    const place = tasks.findIndex((task) => task.startsWith(graph));
    if (!isOver || place === -1) return tasks[place];
    const [task] = tasks.splice(place, 1);
    if (tasks.length === 0) tasksOfCalls.delete(id);
    return task;
  };
  const taskOfCall = (graph: string, payload: unknown): string | undefined => {
    const { toolCallId, event } = payload as { toolCallId?: unknown; event?: unknown };
    const id = typeof toolCallId === "string" ? toolCallId : NO_ID;
    return ofCall(graph, id, event === "on_tool_end" || event === "on_tool_error");
  };

  return {
    handler: new ToolCallsHandler((toolCallId, task) => {
      const tasks = tasksOfCalls.get(toolCallId);
      if (tasks === undefined) tasksOfCalls.set(toolCallId, [task]);
      else tasks.push(task);
    }) as BaseCallbackHandler,

    /** The task of a message or a tool; the given namespace for other modes. Call once for each chunk. */
    taskOf([namespace, mode, payload]: StreamChunk): string[] {
      let task: string | undefined;
      if (mode === "tools") task = taskOfCall(namespace.join("|"), payload);
      else if (mode === "messages" && isObject((payload as unknown[])[1]))
        task = taskIn((payload as [unknown, Metadata])[1]);
      return task?.split("|") ?? namespace;
    },
  };
};
