import type { Event } from "@langchain/protocol";
import { useEffect, useState } from "react";
import { useConnection, type Connection } from "../../server/connection.tsx";
import { useIsVisible } from "../../server/use-is-visible.ts";
import { NO_TASKS, withEvents, type LiveTasks } from "./live-tasks.ts";

/** A fast graph sends thousands of events. */
const RENDER_MS = 100;

/** Follows a thread across runs until `signal` is aborted. */
const follow = async (
  { client }: Connection,
  { threadId, assistantId }: { threadId: string; assistantId: string },
  {
    onEvent,
    onError,
    signal,
  }: { onEvent(event: Event): void; onError(error: Error): void; signal: AbortSignal },
): Promise<void> => {
  const stream = client.threads.stream(threadId, { assistantId, transport: "sse" });
  signal.addEventListener("abort", () => void stream.close());
  stream.onError((error) => {
    if (!signal.aborted) onError(error);
  });
  const events = await stream.subscribe({ channels: ["lifecycle", "tasks"] });
  while (!signal.aborted) {
    const next = await events[Symbol.asyncIterator]().next();
    if (next.done !== true) onEvent(next.value);
    // The client pauses at the end of a run.
    else if (events.isPaused) events.resume();
    else return;
  }
};

interface Live {
  tasks: LiveTasks;
  error: Error | undefined;
}
const NOTHING: Live = { tasks: NO_TASKS, error: undefined };

/** Only in a visible tab, because all tabs share six connections. */
export const useLiveTasks = (threadId: string | undefined, assistantId: string | undefined) => {
  const connection = useConnection();
  const [attempt, setAttempt] = useState(0);
  const key = JSON.stringify([threadId, assistantId, attempt]);
  const [received, setReceived] = useState({ key, live: NOTHING });
  const { tasks, error } = received.key === key ? received.live : NOTHING;
  const isVisible = useIsVisible();
  useEffect(() => {
    if (!isVisible || threadId === undefined || assistantId === undefined) return;
    const abort = new AbortController();
    let pending: Event[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    // A new stream repeats the newest run, so its first events replace older tasks.
    let hasEvents = false;
    const change = (of: (known: Live) => Live): void => {
      const isKnown = hasEvents;
      hasEvents = true;
      setReceived((before) => ({
        key,
        live: of(isKnown && before.key === key ? before.live : NOTHING),
      }));
    };
    const render = (): void => {
      const events = pending;
      pending = [];
      timer = undefined;
      change((known) => ({ ...known, tasks: withEvents(known.tasks, events) }));
    };
    const onEvent = (event: Event): void => {
      pending.push(event);
      timer ??= setTimeout(render, RENDER_MS);
    };
    const onError = (fault: unknown): void => {
      if (abort.signal.aborted) return;
      const thrown = fault instanceof Error ? fault : new Error(String(fault));
      change((known) => ({ ...known, error: thrown }));
    };
    follow(connection, { threadId, assistantId }, { onEvent, onError, signal: abort.signal }).catch(onError);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [connection, threadId, assistantId, key, isVisible]);
  return { ...tasks, error, retry: () => setAttempt((count) => count + 1) };
};
