import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { STREAMED_MESSAGES } from "../../graphs/model-chunks.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isMessage } from "../../state/values/types/message.ts";
import { isObject } from "../../platform/lib/json.ts";
import type { StreamChunk } from "./modes.ts";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";

const HIDDEN_TAG = "langsmith:hidden";

interface Identified {
  id?: string | null;
  lc_kwargs?: { id?: string };
}

const giveId = (value: unknown): void => {
  if (!isObject(value) || !isMessage(value)) return;
  const message = value as Identified;
  if (message.id != null) return;
  message.id = newId();
  if (isObject(message.lc_kwargs)) message.lc_kwargs.id = message.id;
};

const giveIds = (value: unknown): void => (Array.isArray(value) ? value.forEach(giveId) : giveId(value));

type OnReturned = (output: unknown, metadata: Readonly<Record<string, unknown>>) => void;

/**
 * Gives each message that a node returns its own id. LangGraph's mode `messages` gives them all the same id
 * (before 1.7), so the reducer keeps only the last one. `awaitHandlers`: LangGraph's own handler must run later.
 */
class MessageIdsHandler extends BaseCallbackHandler {
  override name = "ThreadloomMessageIds";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreRetriever = true;
  override ignoreAgent = true;
  readonly [STREAMED_MESSAGES] = new Set<string>();
  private readonly nodes = new Map<string, Readonly<Record<string, unknown>>>();

  constructor(private readonly onReturned: OnReturned | undefined) {
    super();
  }

  override handleChainStart(
    _chain: unknown,
    _inputs: unknown,
    runId: string,
    _parentRunId?: string,
    tags?: string[],
    metadata?: Record<string, unknown>,
    _runType?: string,
    name?: string,
  ): void {
    if (name !== undefined && name === metadata?.langgraph_node && !tags?.includes(HIDDEN_TAG))
      this.nodes.set(runId, { tags, name, ...metadata });
  }

  override handleChainEnd(outputs: unknown, runId: string): void {
    const metadata = this.nodes.get(runId);
    if (metadata === undefined) return;
    this.nodes.delete(runId);
    giveIds(outputs);
    if (isObject(outputs)) Object.values(outputs).forEach(giveIds);
    this.onReturned?.(outputs, metadata);
  }

  override handleChainError(_error: unknown, runId: string): void {
    this.nodes.delete(runId);
  }
}

/** `onReturned`: called before LangGraph sends the messages. `metadata`: as LangGraph sends them. */
export const createMessageIds = (onReturned?: OnReturned): BaseCallbackHandler =>
  new MessageIdsHandler(onReturned);

/**
 * From 1.7 on, LangGraph's chunks of messages and tools name only a graph; before, they name its task. Metadata of
 * callbacks name the task in all releases.
 */

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

/** Events of hidden tools are not read, so their errors would stay. */
const REMEMBERED_AT_MOST = 100;

/** Remembers what failed until its event is read, because the event has only text. */
class ToolErrorsHandler extends BaseCallbackHandler {
  override name = "ThreadloomToolErrors";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreChain = true;
  override ignoreRetriever = true;

  constructor(private readonly thrown: Map<string, { error: string; message: string }>) {
    super();
  }

  override handleToolError(error: unknown, runId: string): void {
    this.thrown.set(runId, errorForClients(error));
    for (const oldest of this.thrown.keys()) {
      if (this.thrown.size <= REMEMBERED_AT_MOST) break;
      this.thrown.delete(oldest);
    }
  }
}

const STACK_FRAMES = /\n[ \t]+at [^\n]*/g;

/** LangChain's inner events of failures have the stack (1.2.13), which would show readers the paths of the server. */
export const createInnerErrors = () => {
  const thrown = new Map<string, { error: string; message: string }>();
  return {
    handler: new ToolErrorsHandler(thrown),
    shown(event: StreamEvent): StreamEvent {
      if (!event.event.endsWith("_error")) return event;
      const { run_id: runId, data } = event;
      const known = thrown.get(runId);
      if (known === undefined)
        return { ...event, data: { ...data, error: String(data.error).replace(STACK_FRAMES, "") } };
      const { error, message } = known;
      thrown.delete(runId);
      return { ...event, data: { ...data, error: `${error}: ${message}` } };
    },
  };
};
