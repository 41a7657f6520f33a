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
  // What was sent, or not sent, is done with.
  const begun = messages.findLastIndex(({ text }) => /^Sent to |^The e-mail was not sent/.test(text));
  const asked = messages.slice(begun + 1).filter(({ type }) => type === "human");
  return `Hello, about ${asked.map(({ text }) => `"${text}"`).join(" and ")}: we take care of it. Kind regards`;
};

export const model = new OfflineModel(answerTo);
