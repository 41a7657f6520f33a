import type { Part, StreamResponse, Task as A2aTask } from "@a2a-js/sdk";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import type { CallEvent } from "../calls/events.ts";
import type { Task } from "../calls/tasks.ts";
import { artifact, isAgentMessage, resultOf, statusOf, textOf, textPart } from "./tasks.ts";

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
