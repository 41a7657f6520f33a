import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { HttpAgent as AgentOfOne } from "@ag-ui/client";
import { HttpAgent as OlderAgent } from "ag-ui-client-0";

export const AGUI_GRAPHS = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));

/** Any event, for tests that look at the fields of several. */
export type Event = { type: string } & Record<string, unknown>;

export interface ChatMessage {
  id: string;
  role: string;
  content?: unknown;
  toolCalls?: { id: string; function: { name: string; arguments: string } }[];
}

export interface Asked {
  /** Becomes a message of the user. */
  say?: string;
  messages?: ChatMessage[];
  state?: Record<string, unknown>;
  runId?: string;
  tools?: object[];
  context?: object[];
  forwardedProps?: Record<string, unknown>;
  resume?: object[];
  /** Called for each event, before the next one is read. */
  onEvent?: (event: Event) => void;
}

export interface Front {
  threadId: string;
  readonly messages: ChatMessage[];
  readonly state: Record<string, unknown>;
  /** Resolves with the events of the run, which the client has verified; rejects if it has not. */
  run(asked?: Asked): Promise<Event[]>;
  abort(): void;
}

export type Dialect = "1.0" | "older";
export const DIALECTS: readonly Dialect[] = ["1.0", "older"];

/** A front end with the protocol's official client, of version 1.0 or 0.0.59. */
export const aFront = (
  url: string,
  graph: string,
  { dialect = "1.0", threadId = randomUUID() }: { dialect?: Dialect; threadId?: string } = {},
): Front => {
  const options = { url: `${url}/agui/${graph}`, threadId };
  const agent = (dialect === "1.0" ? new AgentOfOne(options) : new OlderAgent(options)) as AgentOfOne;
  return {
    threadId,
    get messages() {
      return agent.messages as ChatMessage[];
    },
    get state() {
      return agent.state as Record<string, unknown>;
    },
    async run({ say, messages = [], state, onEvent, ...parameters } = {}) {
      const events: Event[] = [];
      for (const message of messages) agent.addMessage(message as never);
      if (say !== undefined) agent.addMessage({ id: randomUUID(), role: "user", content: say });
      if (state !== undefined) agent.setState(state);
      await agent.runAgent(parameters as never, {
        onEvent: ({ event }) => {
          events.push(event as Event);
          onEvent?.(event as Event);
        },
      });
      return events;
    },
    abort: () => agent.abortRun(),
  };
};

export const typesOf = (events: readonly Event[]): string[] => events.map(({ type }) => type);
export const ofType = (events: readonly Event[], type: string): Event[] =>
  events.filter((event) => event.type === type);
/** What the events of this type append, as one text. */
export const deltasOf = (events: readonly Event[], type: string): string =>
  ofType(events, type)
    .map(({ delta }) => delta)
    .join("");
