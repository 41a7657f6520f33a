/**
 * The model that writes. This one needs no key: it follows the rules below. For a real one, put its key into .env, add its
 * package (here @langchain/openai), and let this file be:
 *
 *   import { ChatOpenAI } from "@langchain/openai";
 *   export const model = new ChatOpenAI({ model: "gpt-5-mini" });
 */
import { OfflineModel } from "./offline-model.ts";
import type { BaseMessage } from "@langchain/core/messages";

const answerTo = (messages: BaseMessage[]): string => {
  const asked = messages.filter(({ type }) => type === "human").map(({ text }) => `"${text}"`);
  return `Hello, about ${asked.join(" and ")}: we take care of it. Kind regards`;
};

export const model = new OfflineModel(answerTo);
