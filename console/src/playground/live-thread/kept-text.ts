import { contentText } from "../../parts/message-text.ts";
import { useCallback, useMemo, useState } from "react";
import { toolCallsOf, typeOf, type ShownMessage } from "../messages/messages.ts";

/** What was on the screen when the user stopped a run. The server stores no unfinished answer. */
interface Kept {
  /** The id of the message before it. */
  after: string | undefined;
  messages: readonly ShownMessage[];
}

const NOTHING: readonly Kept[] = [];
const NO_IDS: ReadonlySet<string> = new Set();

const isWorthKeeping = (message: ShownMessage): boolean =>
  message.id !== undefined &&
  typeOf(message) !== "human" &&
  (contentText(message.content) !== "" ||
    toolCallsOf(message).length > 0 ||
    message.tool_call_id !== undefined);

const keptOf = (messages: readonly ShownMessage[]): Kept | undefined => {
  const last = messages.findLastIndex((message) => typeOf(message) === "human");
  const found = messages.slice(last + 1).filter(isWorthKeeping);
  return found.length === 0 ? undefined : { after: messages[last]?.id, messages: found };
};

export const useKeptText = (messages: readonly ShownMessage[]) => {
  const [kept, setKept] = useState(NOTHING);
  const stored = useMemo(
    () => (kept.length === 0 ? NO_IDS : new Set(messages.flatMap(({ id }) => id ?? []))),
    [kept, messages],
  );
  const missing = useMemo(
    () => kept.map((one) => ({ ...one, messages: one.messages.filter(({ id = "" }) => !stored.has(id)) })),
    [kept, stored],
  );
  const shown = useMemo(() => {
    if (missing.every((one) => one.messages.length === 0)) return messages;
    const all = [...messages];
    for (const { after, messages: some } of missing) {
      const at = all.findIndex(({ id }) => id === after);
      all.splice(at === -1 ? all.length : at + 1, 0, ...some);
    }
    return all;
  }, [messages, missing]);
  const stopped = useMemo(
    () =>
      missing.every((one) => one.messages.length === 0)
        ? NO_IDS
        : new Set(missing.flatMap((one) => one.messages.at(-1)?.id ?? [])),
    [missing],
  );
  /** @param later the same messages, with the tokens that came in the meantime */
  const keep = useCallback((before: readonly ShownMessage[], later: readonly ShownMessage[]) => {
    const found = keptOf(before);
    if (found === undefined) return;
    const newer = new Map(later.map((message) => [message.id, message]));
    const newest = found.messages.map((message) => newer.get(message.id) ?? message);
    setKept((known) => {
      // The user may stop twice.
      const isKnown = ({ id }: ShownMessage) =>
        known.some((one) => one.messages.some((other) => other.id === id));
      return [...known, { ...found, messages: newest.filter((message) => !isKnown(message)) }];
    });
  }, []);
  const drop = useCallback(() => setKept(NOTHING), []);
  return { shown, stopped, keep, drop };
};
