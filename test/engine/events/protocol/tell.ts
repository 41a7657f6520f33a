import { createTelling, type AskedModes } from "../../../../src/engine/events/event-publisher.ts";
import { methodOf } from "../../../../src/engine/events/protocol/events.ts";
import { isProtocolEvent } from "../../../../src/engine/events/wires.ts";
import type { GraphRunOptions, RunnableGraph } from "../../../../src/graphs/runnable-graph.ts";

/** `params` of a frame, with its method. */
export interface ToldEvent {
  method: string;
  namespace: string[];
  timestamp: number;
  node?: string;
  data: Record<string, unknown>;
}

export interface Told {
  /** What is told over the protocol wire. */
  protocol: ToldEvent[];
  /** What is told over the first wire, as name and data. */
  first: [event: string, data: string][];
  /** What the graph was asked for. */
  asked: GraphRunOptions;
}

const NOTHING: AskedModes = { stream_mode: [], stream_subgraphs: false };

/** What one execution of a graph tells, as an attempt executes it. */
export const tellRun = async (
  graph: unknown,
  input: unknown,
  {
    asked = NOTHING,
    tellsProtocol = true,
    ...options
  }: { asked?: AskedModes; tellsProtocol?: boolean } & GraphRunOptions = {},
): Promise<Told> => {
  const protocol: ToldEvent[] = [];
  const first: Told["first"] = [];
  const telling = createTelling(asked, tellsProtocol, (event, data) => {
    if (!isProtocolEvent(event)) return void first.push([event, data()]);
    protocol.push({ method: methodOf(event), ...(JSON.parse(data()) as Omit<ToldEvent, "method">) });
  });
  let interrupted = false;
  try {
    const stream = await (graph as RunnableGraph).stream(input, { ...options, ...telling.options });
    for await (const chunk of stream) {
      const whole = telling.wholeOf(chunk);
      interrupted ||= whole[1] === "values" && Object.hasOwn(Object(whole[2]) as object, "__interrupt__");
      telling.tell(whole);
    }
    telling.end(interrupted ? "interrupted" : "completed");
  } catch (error) {
    telling.end("failed");
    if (options.signal === undefined) throw error;
  }
  return { protocol, first, asked: telling.options };
};

/** The events of one method. */
export const ofMethod = (told: Told, method: string): ToldEvent[] =>
  told.protocol.filter((event) => event.method === method);
