/** What somebody wrote to find a thread. */
export interface ThreadSearch {
  /** Asked of the server. */
  ids?: readonly string[];
  /** Asked of the server. */
  metadata?: Record<string, unknown>;
  /** Looked for in what is listed already, in lower case: the server has no search for parts of texts. */
  words?: string;
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const KEY_AND_VALUE = /^([\w.-]+)\s*[=:]\s*(.+)$/;

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** An id, metadata as JSON or as `key=value` (the value may be JSON), or words. */
export const readSearch = (written: string): ThreadSearch => {
  const text = written.trim();
  if (text === "") return {};
  if (ID.test(text)) return { ids: [text.toLowerCase()] };
  const json = text.startsWith("{") ? jsonOf(text) : undefined;
  if (typeof json === "object" && json !== null) return { metadata: json as Record<string, unknown> };
  const [, key, value] = KEY_AND_VALUE.exec(text) ?? [];
  if (key !== undefined && value !== undefined)
    return { metadata: Object.fromEntries([[key, jsonOf(value) ?? value]]) };
  return { words: text.toLowerCase() };
};
