/**
 * An agent that answers with the help of tools. What an assistant may change is its context: the model,
 * the system prompt and the tools. Without a provider's key it answers with an offline model.
 */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { SystemMessage } from "@langchain/core/messages";
import { END, MessagesValue, START, StateGraph, StateSchema, type Runtime } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { OfflineModel } from "./offline-model.ts";
import { calculate, getWeather } from "./tools.ts";

const TOOLS = [getWeather, calculate];

const State = new StateSchema({ messages: MessagesValue });

const Context = z.object({
  model_name: z
    .string()
    .default("offline")
    .describe('"offline", or a provider and a model, e.g. "openai:gpt-4o-mini"'),
  system_prompt: z
    .string()
    .default("Answer the question; use the tools where they help.")
    .describe("What the model is told first"),
  tools: z
    .array(z.enum(["get_weather", "calculate"]))
    .default(["get_weather", "calculate"])
    .describe("The tools that the model may use"),
});

/** Where each provider's client looks for its key. */
const PROVIDER_KEYS: Record<string, string> = {
  openai: "OPENAI_API_KEY",
  anthropic: "ANTHROPIC_API_KEY",
  "google-genai": "GOOGLE_API_KEY",
  mistralai: "MISTRAL_API_KEY",
};

async function chatModel(modelName: string): Promise<BaseChatModel> {
  const [provider = ""] = modelName.split(":");
  const key = PROVIDER_KEYS[provider];
  if (!key || !process.env[key]) return new OfflineModel();
  // Imported when it is needed: the providers' clients would slow down every start of the server.
  const { initChatModel } = await import("langchain/chat_models/universal");
  return initChatModel(modelName);
}

async function agent(state: typeof State.State, runtime: Runtime<z.input<typeof Context>>) {
  const { model_name, system_prompt, tools } = Context.parse(runtime.context ?? {});
  const usable = TOOLS.filter(({ name }) => tools.some((allowed) => allowed === name));
  const model = await chatModel(model_name);
  const runnable = usable.length > 0 && model.bindTools ? model.bindTools(usable) : model;
  const answer = await runnable.invoke([new SystemMessage(system_prompt), ...state.messages], runtime);
  return { messages: [answer] };
}

export const graph = new StateGraph(State, Context)
  .addNode("agent", agent)
  .addNode("tools", new ToolNode(TOOLS))
  .addEdge(START, "agent")
  .addConditionalEdges("agent", toolsCondition, ["tools", END])
  .addEdge("tools", "agent")
  .compile();
