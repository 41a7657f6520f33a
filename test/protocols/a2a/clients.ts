import type { SendMessageRequest } from "@a2a-js/sdk";
import { AgentCard, Role, type Message, type Part, type StreamResponse, type Task } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type Client,
} from "@a2a-js/sdk/client";
import { newId } from "../../../src/platform/lib/ids.ts";

/** The official client in each of its dialects. */

export const DIALECTS = ["JSONRPC 1.0", "JSONRPC 0.3"] as const;
export type Dialect = (typeof DIALECTS)[number];

/** Finds the agent by the address of the assistant, as a client that knows nothing else. */
export const clientOf = async (
  { url }: { url: string },
  assistantId: string,
  dialect: Dialect = "JSONRPC 1.0",
  headers: Record<string, string> = {},
): Promise<Client> => {
  const fetchImpl: typeof fetch = async (input, init) => {
    const all = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    return await fetch(input, { ...init, headers: all });
  };
  const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(`${url}/a2a/${assistantId}/`);
  const [binding, version] = dialect.split(" ");
  const supportedInterfaces = card.supportedInterfaces.filter(
    ({ protocolBinding, protocolVersion }) => protocolBinding === binding && protocolVersion === version,
  );
  const legacyCompat = { enabled: version === "0.3" };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
  });
  return await factory.createFromAgentCard(
    AgentCard.fromJSON({ ...(AgentCard.toJSON(card) as object), supportedInterfaces }),
  );
};

export const text = (value: string): Part => ({
  ...{ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" },
});
export const data = (value: unknown): Part => ({
  ...{ content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" },
});

interface Place {
  messageId?: string;
  contextId?: string;
  taskId?: string;
  returnImmediately?: boolean;
  historyLength?: number;
}

export const saying = (parts: Part[], { messageId = newId(), ...place }: Place = {}): SendMessageRequest => {
  const { contextId = "", taskId = "", returnImmediately = false, historyLength } = place;
  const message: Message = {
    ...{ messageId, contextId, taskId, role: Role.ROLE_USER, parts },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
  };
  return {
    ...{ tenant: "", message, metadata: undefined },
    configuration: {
      ...{ acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately, historyLength },
    },
  };
};

export const sent = async (client: Client, request: SendMessageRequest): Promise<Task> =>
  (await client.sendMessage(request)) as Task;

export const partText = (part: Part | undefined): string =>
  part?.content?.$case === "text" ? part.content.value : JSON.stringify(part?.content?.value);
export const artifactOf = (task: Task): string => task.artifacts[0]?.parts.map(partText).join("") ?? "";
export const statusText = (task: Pick<Task, "status">): string =>
  task.status?.message?.parts.map(partText).join("") ?? "";

/** All events of a stream, without fields that only differ in their form. */
export const eventsOf = async (
  stream: AsyncIterable<StreamResponse>,
): Promise<StreamResponse["payload"][]> => {
  const events: StreamResponse["payload"][] = [];
  for await (const { payload } of stream) events.push(payload);
  return events;
};

/** The artifact as a client that follows a stream has it at the end. */
export const assembled = (events: readonly StreamResponse["payload"][]): string => {
  let artifact = "";
  for (const event of events) {
    if (event?.$case !== "artifactUpdate") continue;
    const added = event.value.artifact?.parts.map(partText).join("") ?? "";
    artifact = event.value.append ? artifact + added : added;
  }
  return artifact;
};

/** The code of the error with which a call fails; undefined if it succeeds. */
export const errorOf = async (call: Promise<unknown>): Promise<string | undefined> =>
  await call.then(
    () => undefined,
    (error: unknown) => (error as Error).name.replace(/^JsonRpc/, ""),
  );
