import { Client, type ThreadStream } from "@langchain/langgraph-sdk";
import { fetchAnswer, type Connection } from "../../server/connection.tsx";
import { messagesIn } from "../messages/messages.ts";
import { orderEvents } from "./ordered-events.ts";
import { withOptions, type RunOptions } from "../composer/run-options.ts";
import type { Turns } from "../messages/turns.ts";

/** The state that the client has read. The hook shows this state a moment after its loading has ended. */
export interface ReadState {
  hasMessages: boolean;
}

/** The part of the state that this page uses. */
export interface Values extends Record<string, unknown> {
  messages?: unknown[];
}

const READ_AGAIN_MS = 1_000;

/** Retries a failed GET once. */
const readTwice: typeof fetch = async (input, init) => {
  const read = (): Promise<Response> => fetchAnswer(input, init);
  if ((init?.method ?? "GET") !== "GET") return await read();
  const first = await read().catch(() => undefined);
  if (first !== undefined && first.status < 500) return first;
  await new Promise((resolve) => setTimeout(resolve, READ_AGAIN_MS));
  return await read();
};

/**
 * The client of one stream; with a new client the hook reads the thread again. `getHistory` is empty, because
 * the hook reads twenty states for subagents, megabytes that the page does not show.
 */
export const clientOfStream = (
  { apiUrl, headers }: Connection,
  optionsOf: () => RunOptions,
  turns: Turns,
  read: ReadState,
): Client => {
  const client = new Client({
    apiUrl,
    apiKey: null,
    defaultHeaders: { ...headers },
    // Commands start runs, so they are never sent twice.
    callerOptions: { maxRetries: 0, fetch: readTwice },
    // The functions of the hook do not take all run options.
    onRequest: (url, init) =>
      url.pathname.endsWith("/commands") && typeof init.body === "string"
        ? { ...init, body: commandWith(optionsOf(), init.body) }
        : init,
  });
  const stream = client.threads.stream.bind(client.threads) as (...args: unknown[]) => ThreadStream;
  client.threads.stream = ((...args: unknown[]) => {
    const opened = stream(...args);
    // Registered before the hook, so the hook shows no event that `turns` does not know.
    opened.onEvent((event) => turns.add(event));
    orderEvents(opened);
    return opened;
  }) as never;
  client.threads.getHistory = () => Promise.resolve([]);
  const getState = client.threads.getState.bind(client.threads);
  client.threads.getState = (async (...args: Parameters<typeof getState>) => {
    const state = withMessages(await getState(...args));
    read.hasMessages = ((state.values as Values | null)?.messages?.length ?? 0) > 0;
    return state;
  }) as never;
  return client;
};

/** One message of an unknown shape would make the hook drop all messages. */
const withMessages = <State extends { values: unknown }>(state: State): State => {
  const values = state.values as Values | null;
  return Array.isArray(values?.messages)
    ? { ...state, values: { ...values, messages: messagesIn(values.messages) } }
    : state;
};

const commandWith = (options: RunOptions, body: string): string => {
  const command = JSON.parse(body) as { params?: Record<string, unknown> };
  return JSON.stringify({ ...command, params: withOptions(command.params ?? {}, options) });
};
