/**
 * The model that plans and writes. This one needs no key: it follows the rules below. For a real one, put its key into .env,
 * add its package (here @langchain/openai), and let this file be:
 *
 *   import { ChatOpenAI } from "@langchain/openai";
 *   export const model = new ChatOpenAI({ model: "gpt-5-mini" });
 */
import { OfflineModel } from "./offline-model.js";

const answerTo = (messages) => {
  const [instructions = "", ...material] = (messages[0]?.text ?? "").split("\n");
  const topic = messages.at(-1)?.text ?? "";
  if (instructions.startsWith("Split"))
    return `What is ${topic}?\nWho needs ${topic}?\nWhat comes after ${topic}?`;
  if (instructions.startsWith("Answer")) return `${material.length} sources agree about it.`;
  return [`Report on ${topic}`, ...material.map((line) => `- ${line}`)].join("\n");
};

export const model = new OfflineModel(answerTo);
