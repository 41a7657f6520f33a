import {
  Role,
  TaskState,
  type Artifact,
  type Message,
  type Part,
  type StreamResponse,
  type Task as A2aTask,
} from "@a2a-js/sdk";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import type { CallEvent, Interrupt } from "../calls/outcome.ts";
import type { Task } from "../calls/tasks.ts";

export const STATES: Readonly<Record<Task["state"], TaskState>> = {
  submitted: TaskState.TASK_STATE_SUBMITTED,
  working: TaskState.TASK_STATE_WORKING,
  "input-required": TaskState.TASK_STATE_INPUT_REQUIRED,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
};

export const TERMINAL: ReadonlySet<Task["state"]> = new Set(["completed", "failed", "cancelled"]);

export const selectorOf = ({ threadId, run }: Task) => ({ threadId, runId: run.run_id });

/** Fields of a run's metadata: the ids of its message and of the task's first message. */
export const MESSAGE_ID = "message_id";
export const FIRST_MESSAGE_ID = "first_message_id";

/** The specification allows a lower limit than the client's. */
const HISTORY_AT_MOST = 100;
/** A task has one artifact: streams replace it with each message of the agent, until the last. */
const ARTIFACT_ID = "response";

type Place = Pick<Task, "id" | "threadId">;

const part = (content: NonNullable<Part["content"]>, metadata?: JsonObject): Part => ({
  content,
  metadata,
  filename: "",
  mediaType: content.$case === "text" ? "text/plain" : "application/json",
});
const textPart = (text: string, metadata?: JsonObject): Part =>
  part({ $case: "text", value: text }, metadata);
const dataPart = (value: JsonValue, metadata?: JsonObject): Part => part({ $case: "data", value }, metadata);

/** The text of a message, or of its text blocks. */
const textOf = (content: JsonValue | undefined): string => {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block) => (isJsonObject(block) && typeof block.text === "string" ? block.text : ""))
    .join("");
};

const isAgentMessage = (message: JsonValue | undefined): message is JsonObject =>
  isJsonObject(message) && message.type === "ai";

const agentMessage = ({ id, threadId }: Place, messageId: string, parts: Part[]): Message => ({
  ...{ messageId, contextId: threadId, taskId: id, role: Role.ROLE_AGENT, parts },
  ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
});

/** Messages of the state since the task's first message. A graph may drop that message, or get none. */
const messagesOf = ({ run, state }: Task, { messages }: JsonObject): readonly JsonValue[] => {
  if (!Array.isArray(messages)) return [];
  const firstMessageId = run.metadata[FIRST_MESSAGE_ID];
  const from = messages.findLastIndex((message) => isJsonObject(message) && message.id === firstMessageId);
  if (from !== -1) return messages.slice(from);
  return state === "submitted" || state === "working" ? [] : messages;
};

const historyOf = (task: Task, values: JsonObject, length = HISTORY_AT_MOST): Message[] => {
  const atMost = Math.min(length, HISTORY_AT_MOST);
  const history: Message[] = [];
  const messages = messagesOf(task, values);
  for (let place = messages.length - 1; place >= 0 && history.length < atMost; place -= 1) {
    const message = messages[place];
    const isOfUser = isJsonObject(message) && message.type === "human";
    if (!isOfUser && !isAgentMessage(message)) continue;
    const text = textOf(message.content);
    if (text === "") continue;
    const messageId = typeof message.id === "string" ? message.id : `${task.run.run_id}:${place}`;
    const said = agentMessage(task, messageId, [textPart(text)]);
    history.unshift(isOfUser ? { ...said, role: Role.ROLE_USER } : said);
  }
  return history;
};

const artifact = (parts: Part[]): Artifact => ({
  ...{ artifactId: ARTIFACT_ID, name: "Assistant Response", description: "", parts },
  ...{ metadata: undefined, extensions: [] },
});

/** The agent's last text, or the values of a completed graph without messages. Undefined if there is neither. */
const resultOf = (task: Task, values: JsonObject): Part | undefined => {
  const last = messagesOf(task, values).findLast(
    (message) => isAgentMessage(message) && textOf(message.content) !== "",
  );
  if (last !== undefined) return textPart(textOf((last as JsonObject).content));
  if (task.state !== "completed" || Array.isArray(values.messages) || Object.keys(values).length === 0)
    return undefined;
  return dataPart(values);
};

const questionOf = ({ id, value }: Interrupt): Part => {
  const metadata = { interrupt_id: id };
  return typeof value === "string" ? textPart(value, metadata) : dataPart(value, metadata);
};

/** The status of a task, with its questions or its error. */
const statusOf = (task: Task): NonNullable<A2aTask["status"]> => {
  const { state, run, interrupts } = task;
  const says = (parts: Part[]): Message => agentMessage(task, `${run.run_id}:${state}`, parts);
  const message =
    state === "input-required"
      ? says(interrupts.map(questionOf))
      : state === "failed" && run.error !== null
        ? says([textPart(String(run.error.message))])
        : undefined;
  const since = state === "submitted" || state === "working" ? run.created_at : run.updated_at;
  return { state: STATES[state], message, timestamp: since.toISOString() };
};

/** `values`: of the graph; undefined for a task without history and artifacts. */
export const toA2aTask = (
  task: Task,
  values: JsonObject | undefined,
  {
    historyLength,
    withArtifacts = true,
  }: { historyLength?: number | undefined; withArtifacts?: boolean } = {},
): A2aTask => {
  const result = values && withArtifacts ? resultOf(task, values) : undefined;
  return {
    id: task.id,
    contextId: task.threadId,
    status: statusOf(task),
    artifacts: result === undefined ? [] : [artifact([result])],
    history: values === undefined ? [] : historyOf(task, values, historyLength),
    metadata: undefined,
  };
};

export const taskEvent = (task: A2aTask): StreamResponse => ({ payload: { $case: "task", value: task } });

export const statusEvent = (task: Task): StreamResponse => ({
  payload: {
    $case: "statusUpdate",
    value: { taskId: task.id, contextId: task.threadId, status: statusOf(task), metadata: undefined },
  },
});

/** JSON gives chunks and whole messages the same type. Only chunks have `tool_call_chunks`. */
const isChunk = (message: JsonObject): boolean => Object.hasOwn(message, "tool_call_chunks");

/**
 * The artifact of a task while its agent writes: each message replaces the former. Of messages that are written at
 * once, the shown one stays until another is twice as long, so that neither mixes with the other or is sent too often.
 */
export const createArtifactUpdates = ({ id, threadId }: Pick<Task, "id" | "threadId">) => {
  const texts = new Map<JsonValue | undefined, string>();
  let shownId: JsonValue | undefined;
  let shown = "";

  const update = (content: Part, append: boolean, lastChunk: boolean): StreamResponse => ({
    payload: {
      $case: "artifactUpdate",
      value: {
        ...{ taskId: id, contextId: threadId, artifact: artifact([content]) },
        ...{ append, lastChunk, metadata: undefined },
      },
    },
  });

  return {
    /** Undefined for an event that adds no text of the agent. */
    of({ event, data }: CallEvent): StreamResponse | undefined {
      const [message] = event === "messages" && Array.isArray(data) ? data : [];
      if (!isAgentMessage(message)) return undefined;
      const added = textOf(message.content);
      if (added === "") return undefined;
      const { id } = message;
      const before = texts.get(id);
      const text = isChunk(message) ? (before ?? "") + added : added;
      if (text === before) return undefined;
      texts.set(id, text);
      const isShown = before !== undefined && id === shownId;
      if (before !== undefined && !isShown && text.length < 2 * shown.length) return undefined;
      const append = isShown && isChunk(message);
      shownId = id;
      shown = text;
      return update(textPart(append ? added : text), append, false);
    },

    /** Sends only what streaming has not sent. Undefined for a task without an artifact. */
    last(task: Task, values: Parameters<typeof resultOf>[1]): StreamResponse | undefined {
      const result = resultOf(task, values);
      if (result === undefined) return undefined;
      const isSent = result.content?.$case === "text" && result.content.value === shown;
      return isSent ? update(textPart(""), true, true) : update(result, false, true);
    },
  };
};
