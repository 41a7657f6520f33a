import { Client, type ThreadStream } from "@langchain/langgraph-sdk";
import { fetchAnswer, type Connection } from "../server/connection.tsx";
import { messagesIn } from "./messages.ts";
import { orderEvents } from "./ordered-events.ts";
import { withOptions, type RunOptions } from "./run-options.ts";
import type { Turns } from "./turns.ts";

/** The state of a thread, as far as this page looks into it. */
export interface Values extends Record<string, unknown> {
  messages?: unknown[];
}

const READ_AGAIN_MS = 1_000;

/** Reads once more what could not be read. */
const readTwice: typeof fetch = async (input, init) => {
  const read = (): Promise<Response> => fetchAnswer(input, init);
  if ((init?.method ?? "GET") !== "GET") return await read();
  const first = await read().catch(() => undefined);
  if (first !== undefined && first.status < 500) return first;
  await new Promise((resolve) => setTimeout(resolve, READ_AGAIN_MS));
  return await read();
};

/**
 * The official client, of one stream: a new one makes the hook read the thread anew. The hook also reads the last twenty states to
 * find subagents, which nothing here shows: with thousands of messages they are megabytes.
 */
export const clientOfStream = (
  { apiUrl, headers }: Connection,
  optionsOf: () => RunOptions,
  turns: Turns,
): Client => {
  const client = new Client({
    apiUrl,
    apiKey: null,
    defaultHeaders: { ...headers },
    // What starts a run is never sent twice.
    callerOptions: { maxRetries: 0, fetch: readTwice },
    // The hook's own functions take a part of what a run may be given.
    onRequest: (url, init) =>
      url.pathname.endsWith("/commands") && typeof init.body === "string"
        ? { ...init, body: commandWith(optionsOf(), init.body) }
        : init,
  });
  const stream = client.threads.stream.bind(client.threads) as (...args: unknown[]) => ThreadStream;
  client.threads.stream = ((...args: unknown[]) => {
    const opened = stream(...args);
    // Before the hook does, so that it shows nothing of which this has not heard.
    opened.onEvent((event) => turns.add(event));
    orderEvents(opened);
    return opened;
  }) as never;
  client.threads.getHistory = () => Promise.resolve([]);
  const getState = client.threads.getState.bind(client.threads);
  client.threads.getState = (async (...args: Parameters<typeof getState>) =>
    withMessages(await getState(...args))) as never;
  return client;
};

/** One message that the hook can make nothing of, and it shows none at all. */
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
