import { EventType, type Event, type Message } from "@ag-ui/core";
import { reasoningIdOf, reasoningOf, resultOf, roleOf, textOf } from "./messages.ts";

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

const listOf = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === "object" && item !== null) : [];
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
      const chunks = listOf(message["tool_call_chunks"]);
      // A model that does not stream its tool calls sends them complete.
      for (const chunk of chunks.length > 0 ? chunks : listOf(message["tool_calls"]))
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

type Known = Pick<Message, "id" | "role">;

/** Parts of a list whose order counts, by the place where they begin. */
interface Block {
  key: string;
  start: number;
}

/**
 * Results of tools in a row are one block: clients show each with its call, in the order in which they arrive. Reasoning
 * comes with its message, and clients need not send it back.
 */
const blocksOf = (messages: readonly Known[]): Block[] => {
  const blocks: { ids: string[]; role: string; start: number }[] = [];
  for (const [start, { id, role }] of messages.entries()) {
    if (role === "reasoning") continue;
    const last = blocks.at(-1);
    if (role === "tool" && last?.role === role) last.ids.push(id);
    else blocks.push({ ids: [id], role, start });
  }
  return blocks.map(({ ids, start }) => ({ key: JSON.stringify(ids.sort()), start }));
};

/**
 * The messages of a page, as the official clients keep them: a snapshot leaves the messages that the page has at their
 * places, and appends the others. So a page that missed a turn would show this turn behind its next question.
 */
export const createPageMessages = (asked: readonly Message[]) => {
  let page: Known[] = asked.map(({ id, role }) => ({ id, role }));
  /** Messages by the tool calls in them. */
  const owners = new Map<string, string>();

  const add = (id: string, role: Known["role"]): void => {
    if (!page.some((known) => known.id === id)) page.push({ id, role });
  };

  const addResult = (id: string, toolCallId: string): void => {
    const owner = owners.get(toolCallId);
    let place = page.findIndex((known) => known.id === owner) + 1;
    if (place === 0) place = page.length;
    while (page[place]?.role === "tool") place += 1;
    page.splice(place, 0, { id, role: "tool" });
  };

  const noteCalls = (messages: readonly Message[]): void => {
    for (const message of messages)
      if (message.role === "assistant")
        for (const { id } of message.toolCalls ?? []) owners.set(id, message.id);
  };
  noteCalls(asked);

  const note = (event: Event): void => {
    switch (event.type) {
      case EventType.TEXT_MESSAGE_START:
        return add(event.messageId, event.role ?? "assistant");
      case EventType.REASONING_MESSAGE_START:
        return add(event.messageId, "reasoning");
      case EventType.TOOL_CALL_START: {
        const owner = event.parentMessageId ?? event.toolCallId;
        owners.set(event.toolCallId, owner);
        return add(owner, "assistant");
      }
      case EventType.TOOL_CALL_RESULT:
        return addResult(event.messageId, event.toolCallId);
      default:
    }
  };

  return {
    /** The events themselves, which the page gets. */
    noted(events: Iterable<Event>): Event[] {
      const shown = [...events];
      shown.forEach(note);
      return shown;
    },

    /** The snapshots that bring the page to these messages in this order. */
    snapshots(messages: readonly Message[]): Event[] {
      const wanted = new Set(messages.map(({ id }) => id));
      const kept = page.filter(({ id }) => wanted.has(id));
      const has = new Set(kept.map(({ id }) => id));
      const merged = blocksOf([...kept, ...messages.filter(({ id }) => !has.has(id))]);
      const wrong = blocksOf(messages).find(({ key }, place) => merged[place]?.key !== key);
      page = messages.map(({ id, role }) => ({ id, role }));
      noteCalls(messages);
      return [...(wrong === undefined ? [] : [messages.slice(0, wrong.start)]), messages].map((shown) => ({
        type: EventType.MESSAGES_SNAPSHOT,
        messages: [...shown],
      }));
    },
  };
};
