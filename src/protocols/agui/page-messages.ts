import { EventType, type Event, type Message } from "@ag-ui/core";

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
