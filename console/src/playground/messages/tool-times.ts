import { useCallback, useEffect, useRef } from "react";
import { toolCallsOf, type ShownMessage } from "./messages.ts";
import type { DurationOf } from "./tool-call.tsx";

/** Older messages have no open calls. */
const LOOKED_AT = 30;

/** Of the tool calls that ran while the page showed them: no message says how long a tool took. */
export const useToolTimes = (messages: readonly ShownMessage[], isRunning: boolean): DurationOf => {
  const began = useRef(new Map<string, number>());
  const took = useRef(new Map<string, number>());
  useEffect(() => {
    if (!isRunning) return;
    const now = performance.now();
    const newest = messages.slice(-LOOKED_AT);
    const answered = new Set(newest.flatMap(({ tool_call_id: id }) => id ?? []));
    for (const { id = "" } of newest.flatMap(toolCallsOf))
      if (!answered.has(id) && !began.current.has(id)) began.current.set(id, now);
    for (const id of answered) {
      const from = began.current.get(id);
      if (from !== undefined && !took.current.has(id)) took.current.set(id, now - from);
    }
  }, [messages, isRunning]);
  return useCallback((id) => (id === undefined ? undefined : took.current.get(id)), []);
};
