import { contentText } from "./message-text.ts";

const CHARACTERS = 80;
/** A list reads its names again at each update, and a message may have megabytes. */
const CHARACTERS_READ = 1_000;

/** `extract` of a search: the text that names a thread without a title. */
export const FIRST_MESSAGE = { first: "values.messages[0].content" } as const;

export interface NamedThread {
  thread_id: string;
  metadata: Record<string, unknown> | null;
  extracted?: { first?: unknown };
}

/** Undefined if the message has no text. */
export const firstWords = (content: unknown): string | undefined => {
  const text = contentText(content).trimStart().slice(0, CHARACTERS_READ).trim().replace(/\s+/g, " ");
  return text === "" ? undefined : text.slice(0, CHARACTERS);
};

export const titleOf = (metadata: Record<string, unknown> | null | undefined): string | undefined =>
  [metadata?.["title"], metadata?.["thread_name"]].find(
    (title): title is string => typeof title === "string" && title.trim() !== "",
  );

/** The title, else the first message, else the id. */
export const threadName = ({ thread_id: id, metadata, extracted }: NamedThread): string =>
  titleOf(metadata) ?? firstWords(extracted?.first) ?? id;
