import type { ThreadStatus } from "@langchain/langgraph-sdk";

export interface ThreadSearch {
  /** Filtered by the server. */
  ids?: readonly string[];
  /** Filtered by the server. */
  metadata?: Record<string, unknown>;
  /** Filtered by the server. */
  status?: ThreadStatus;
  /** In lower case. The server has no text search, so the page reads and filters all threads. */
  words?: string;
}

const STATUSES: readonly unknown[] = ["idle", "busy", "interrupted", "error"] satisfies ThreadStatus[];

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const KEY_AND_VALUE = /^([\w.-]+)\s*[=:]\s*(.+)$/;

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** An id, metadata as JSON or `key=value` (the value may be JSON), `status=` with a status, or words. */
export const readSearch = (written: string): ThreadSearch => {
  const text = written.trim();
  if (text === "") return {};
  if (ID.test(text)) return { ids: [text.toLowerCase()] };
  const json = text.startsWith("{") ? jsonOf(text) : undefined;
  if (typeof json === "object" && json !== null) return { metadata: json as Record<string, unknown> };
  const [, key, value] = KEY_AND_VALUE.exec(text) ?? [];
  if (key === "status" && STATUSES.includes(value)) return { status: value as ThreadStatus };
  if (key !== undefined && value !== undefined)
    return { metadata: Object.fromEntries([[key, jsonOf(value) ?? value]]) };
  return { words: text.toLowerCase() };
};
