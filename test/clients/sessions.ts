import type { Client, ThreadStream, SubscriptionHandle } from "@langchain/langgraph-sdk";
import type { Event } from "@langchain/protocol";
import { WebSocket } from "ws";
import { load, type SdkLine } from "./lines.ts";

export const TRANSPORTS = ["SSE", "WebSocket"] as const;
export type Transport = (typeof TRANSPORTS)[number];

export const clientOf = async (line: SdkLine, url: string): Promise<Client> =>
  // Without a key: over a WebSocket the SDK refuses to have headers.
  new (await load(line)).Client({ apiUrl: url, apiKey: null as unknown as undefined });

export const sessionOf = (
  client: Client,
  transport: Transport,
  assistantId: string,
  threadId: string = crypto.randomUUID(),
): ThreadStream =>
  client.threads.stream(threadId, {
    assistantId,
    ...(transport === "SSE"
      ? {}
      : {
          transport: "websocket",
          // Node 20 has none of its own.
          webSocketFactory: (url: string) => new WebSocket(url) as unknown as globalThis.WebSocket,
        }),
  });

/** A model's next text in an event of the channel `messages`; undefined for another event. */
export const deltaOf = (event: Event): string | undefined => {
  if (event.method !== "messages") return undefined;
  const { data } = event.params;
  return data.event === "content-block-delta" && data.delta.type === "text-delta"
    ? data.delta.text
    : undefined;
};

/** The events of a subscription until its run pauses or ends; more can be read after the next run has begun. */
export const eventsUntilPause = async (subscription: SubscriptionHandle): Promise<Event[]> => {
  const events: Event[] = [];
  for await (const event of subscription) events.push(event);
  return events;
};

/** The text of the models of `tokens` and `dialogue` with this many tokens. */
export const tokensOf = (count: number): string =>
  Array.from({ length: count }, (_, index) => `t${index} `).join("");
