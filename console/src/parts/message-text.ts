import { isObject } from "./is-object.ts";

const textOfBlock = (block: unknown): string => {
  if (typeof block === "string") return block;
  return isObject(block) && block["type"] === "text" && typeof block["text"] === "string"
    ? block["text"]
    : "";
};

/** The text of a message's content, without images and calls. */
export const contentText = (content: unknown): string => {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? (content as unknown[]).map(textOfBlock).join("") : "";
};

/** The tokens that a model reported for a message. */
export const tokensOf = (message: unknown): number => {
  const usage = isObject(message) ? message["usage_metadata"] : undefined;
  const total = isObject(usage) ? usage["total_tokens"] : undefined;
  return typeof total === "number" && Number.isFinite(total) ? total : 0;
};
