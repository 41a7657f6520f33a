import { shortId } from "../parts/record-link.tsx";
import type { RunDetails } from "./run-record.ts";

const CHARACTERS_AT_MOST = 90;
const DEPTH_AT_MOST = 4;
const ITEMS_READ = 20;

/** The first text in a value: of a message, of a part of its content, of a field. */
const firstText = (value: unknown, depth = 0): string | undefined => {
  if (typeof value === "string") return value.slice(0, CHARACTERS_AT_MOST * 2).trim() || undefined;
  if (typeof value !== "object" || value === null || depth > DEPTH_AT_MOST) return undefined;
  const { messages, content, text } = value as { messages?: unknown; content?: unknown; text?: unknown };
  const parts = Array.isArray(value) ? value.slice(0, ITEMS_READ) : [messages, content, text];
  for (const part of parts) {
    const found = firstText(part, depth + 1);
    if (found !== undefined) return found;
  }
  const fields = Array.isArray(value) ? [] : Object.values(value).slice(0, ITEMS_READ);
  return depth > 0
    ? undefined
    : fields.find((field): field is string => typeof field === "string" && field !== "");
};

/** The first words of its input; otherwise its id. */
export const runName = ({ run_id: runId, kwargs }: RunDetails): string => {
  const { input, command } = kwargs ?? {};
  const resume = (command as { resume?: unknown } | null | undefined)?.resume;
  const text = (firstText(input) ?? firstText(resume))?.replace(/\s+/g, " ");
  if (text === undefined) return `Run …${shortId(runId)}`;
  return text.length > CHARACTERS_AT_MOST ? `${text.slice(0, CHARACTERS_AT_MOST).trimEnd()}…` : text;
};
