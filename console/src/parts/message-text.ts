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
