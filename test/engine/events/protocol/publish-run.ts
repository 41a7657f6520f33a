import { EventPublisher, type AskedModes } from "../../../../src/engine/events/event-publisher.ts";
import type { ProtocolMethod } from "../../../../src/engine/events/protocol/events.ts";
import { isProtocolEvent, PROTOCOL_EVENT_PREFIX } from "../../../../src/engine/events/wires.ts";
import type { GraphRunOptions, RunnableGraph } from "../../../../src/graphs/runnable-graph.ts";

export interface PublishedEvent {
  method: string;
  namespace: string[];
  timestamp: number;
  node?: string;
  data: Record<string, unknown>;
}

export interface PublishedEvents {
  protocol: PublishedEvent[];
  /** The events of the first wire, as name and data. */
  first: [event: string, data: string][];
  /** The options with which the graph was called. */
  asked: GraphRunOptions;
}

const NOTHING: AskedModes = { stream_mode: [], stream_subgraphs: false };

/** Executes a graph once, as an attempt does, and returns its events. */
export const publishRun = async (
  graph: unknown,
  input: unknown,
  {
    asked = NOTHING,
    publishesProtocol = true,
    ...options
  }: { asked?: AskedModes; publishesProtocol?: boolean } & GraphRunOptions = {},
): Promise<PublishedEvents> => {
  const protocol: PublishedEvent[] = [];
  const first: PublishedEvents["first"] = [];
  const publisher = new EventPublisher(asked, publishesProtocol, (event, data) => {
    if (!isProtocolEvent(event)) return void first.push([event, data()]);
    protocol.push({
      method: event.slice(PROTOCOL_EVENT_PREFIX.length) as ProtocolMethod,
      ...(JSON.parse(data()) as Omit<PublishedEvent, "method">),
    });
  });
  let interrupted = false;
  try {
    const stream = await (graph as RunnableGraph).stream(input, { ...options, ...publisher.options });
    for await (const chunk of stream) {
      const whole = publisher.wholeOf(chunk);
      interrupted ||= whole[1] === "values" && Object.hasOwn(Object(whole[2]) as object, "__interrupt__");
      publisher.publish(whole);
    }
    publisher.end(interrupted ? "interrupted" : "completed");
  } catch (error) {
    publisher.end("failed");
    if (options.signal === undefined) throw error;
  }
  return { protocol, first, asked: publisher.options };
};

export const ofMethod = (published: PublishedEvents, method: string): PublishedEvent[] =>
  published.protocol.filter((event) => event.method === method);
