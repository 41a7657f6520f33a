import { EventType, type Event, type Message } from "@ag-ui/core";
import { blocksOf, reasoningIdOf, reasoningOf, resultOf, roleOf, textOf } from "./messages.ts";

type Fields = Record<string, unknown>;

interface OpenMessage {
  id: string;
  /** Of the root graph: its end is the end of the message. */
  taskId: string;
  text: boolean;
  reasoning: boolean;
  /** Ids of open tool calls, by their index in the message. */
  calls: Map<unknown, string>;
}

const stringOf = (value: unknown): string => (typeof value === "string" ? value : "");
const isSaid = (value: unknown): boolean => typeof value === "string" && value !== "";

/** Providers say in a last chunk why a message ended. */
const isLast = ({ response_metadata: response, chunk_position: position }: Fields): boolean => {
  const { finish_reason: finish, stop_reason: stop } = (response ?? {}) as Fields;
  return isSaid(finish) || isSaid(stop) || position === "last";
};

/** `emit-messages: false` in a model's metadata keeps its output from the client; CopilotKit adds a prefix. */
const isSilent = (metadata: Fields, what: "messages" | "tool-calls"): boolean =>
  metadata[`emit-${what}`] === false || metadata[`copilotkit:emit-${what}`] === false;

const TEXT_ROLES = new Set(["user", "assistant", "system", "developer"] as const);
type TextRole = typeof TEXT_ROLES extends Set<infer Role> ? Role : never;
const isTextRole = (role: string | undefined): role is TextRole => TEXT_ROLES.has(role as TextRole);

/** Turns what models stream into messages that open, grow and close. One per attempt of a run. */
export const createOpenMessages = () => {
  const open = new Map<string, OpenMessage>();
  /** Messages and tool calls that the client has. */
  const sent = new Set<string>();

  function* closeText(message: OpenMessage): Generator<Event> {
    if (!message.text) return;
    message.text = false;
    yield { type: EventType.TEXT_MESSAGE_END, messageId: message.id };
  }

  function* closeReasoning(message: OpenMessage): Generator<Event> {
    if (!message.reasoning) return;
    message.reasoning = false;
    const messageId = reasoningIdOf(message.id);
    yield { type: EventType.REASONING_MESSAGE_END, messageId };
    yield { type: EventType.REASONING_END, messageId };
  }

  function* close(message: OpenMessage): Generator<Event> {
    open.delete(message.id);
    yield* closeReasoning(message);
    yield* closeText(message);
    for (const toolCallId of message.calls.values()) yield { type: EventType.TOOL_CALL_END, toolCallId };
  }

  function* think(message: OpenMessage, delta: string): Generator<Event> {
    const messageId = reasoningIdOf(message.id);
    if (!message.reasoning) {
      message.reasoning = true;
      yield { type: EventType.REASONING_START, messageId };
      yield { type: EventType.REASONING_MESSAGE_START, messageId, role: "reasoning" };
    }
    yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta };
  }

  function* say(message: OpenMessage, delta: string, role: TextRole): Generator<Event> {
    yield* closeReasoning(message);
    if (!message.text) {
      message.text = true;
      yield { type: EventType.TEXT_MESSAGE_START, messageId: message.id, role };
    }
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: message.id, delta };
  }

  function* call(message: OpenMessage, chunk: Fields): Generator<Event> {
    const { id, name, args, index } = chunk;
    const key = index ?? id ?? "";
    let toolCallId = message.calls.get(key);
    if (toolCallId === undefined) {
      if (typeof id !== "string" || typeof name !== "string" || sent.has(id)) return;
      toolCallId = id;
      yield* closeReasoning(message);
      yield* closeText(message);
      message.calls.set(key, id);
      sent.add(id);
      yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: name, parentMessageId: message.id };
    }
    const delta = typeof args === "string" ? args : args == null ? "" : JSON.stringify(args);
    if (delta !== "") yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta };
  }

  function* grow(
    id: string,
    message: Fields,
    metadata: Fields,
    role: TextRole,
    taskId: string,
  ): Generator<Event> {
    const isChunk = Array.isArray(message["tool_call_chunks"]);
    // A node that returns a streamed message returns it as a whole.
    if (!isChunk && sent.has(id)) return;
    sent.add(id);
    const growing = open.get(id) ?? { id, taskId, text: false, reasoning: false, calls: new Map() };
    open.set(id, growing);
    const reasoning = role === "assistant" ? reasoningOf(message) : "";
    if (reasoning !== "" && !isSilent(metadata, "messages")) yield* think(growing, reasoning);
    const text = textOf(message["content"]);
    if (text !== "" && !isSilent(metadata, "messages")) yield* say(growing, text, role);
    if (!isSilent(metadata, "tool-calls")) {
      const chunks = blocksOf(message["tool_call_chunks"]);
      // A model that does not stream its tool calls sends them complete.
      for (const chunk of chunks.length > 0 ? chunks : blocksOf(message["tool_calls"]))
        yield* call(growing, chunk);
    }
    if (!isChunk || isLast(message)) yield* close(growing);
  }

  return {
    /** `[message, metadata]` of the stream mode `messages-tuple`. */
    *add([message, metadata]: readonly [Fields, Fields]): Generator<Event> {
      const id = stringOf(message["id"]);
      const role = roleOf(message);
      if (id === "" || role === undefined) return;
      if (role === "tool") {
        const toolCallId = stringOf(message["tool_call_id"]);
        if (toolCallId === "" || sent.has(id) || isSilent(metadata, "tool-calls")) return;
        sent.add(id);
        const content = resultOf(message["content"]);
        yield { type: EventType.TOOL_CALL_RESULT, messageId: id, toolCallId, content, role: "tool" };
        return;
      }
      if (!isTextRole(role)) return;
      const [ofRoot = ""] = stringOf(metadata["langgraph_checkpoint_ns"]).split("|", 1);
      yield* grow(id, message, metadata, role, ofRoot.slice(ofRoot.lastIndexOf(":") + 1));
    },

    /** The node that made the messages has ended. */
    *endTask(taskId: string): Generator<Event> {
      for (const message of open.values()) if (message.taskId === taskId) yield* close(message);
    },

    *endAll(): Generator<Event> {
      for (const message of open.values()) yield* close(message);
    },
  };
};

/** Reasoning and results of tools are shown with their messages, wherever they are in the list. */
const idsOf = (messages: readonly Message[]): string[] =>
  messages.filter(({ role }) => role !== "reasoning" && role !== "tool").map(({ id }) => id);

/**
 * The official clients leave the messages that the page has at their places in a snapshot, and append the others. So a
 * page that missed a turn would show this turn behind its next question, if it did not get the common beginning first.
 */
export const createPageSnapshots = (asked: readonly Message[]) => {
  let page = idsOf(asked);
  /** The snapshots that bring the page to these messages in this order. */
  return (messages: readonly Message[]): Event[] => {
    const wanted = idsOf(messages);
    const isWanted = new Set(wanted);
    const kept = page.filter((id) => isWanted.has(id));
    const wrong = wanted.find((id, place) => place < kept.length && kept[place] !== id);
    page = wanted;
    const begin = messages.findIndex(({ id }) => id === wrong);
    return [...(begin === -1 ? [] : [messages.slice(0, begin)]), messages].map((shown) => ({
      type: EventType.MESSAGES_SNAPSHOT,
      messages: [...shown],
    }));
  };
};
