import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { createMessageIds } from "./message-ids.ts";
import { createChunkConverter, requestModes, type Emit, type StreamChunk } from "./modes.ts";
import { createProtocolConverter, PROTOCOL_MODES } from "./protocol/converter.ts";
import type { GraphEnd } from "./protocol/subgraphs.ts";
import type { TransformerFactories } from "./protocol/transformers.ts";

/** What a run was asked to tell over the first wire. */
export interface AskedModes {
  stream_mode: readonly string[];
  stream_subgraphs: boolean;
  /** See RunKwargs. */
  headers?: Readonly<Record<string, string>>;
}

/** What an attempt tells, and what its graph is asked for so that it can. */
export interface Telling {
  /** Options of `graph.stream`. */
  readonly options: {
    streamMode: string[];
    subgraphs: boolean;
    version?: "v2";
    callbacks?: BaseCallbackHandler[];
  };
  /** The graph is to be executed by `streamEvents`. */
  readonly throughEvents: boolean;
  /** What the graph streams, in the one form; without subgraphs LangGraph leaves the namespace out. */
  wholeOf(chunk: unknown): StreamChunk;
  /** The graph that is executed, before it streams. */
  begin(graph: { streamTransformers?: unknown }): void;
  /** Makes events of what the graph has streamed. */
  tell(chunk: StreamChunk): void;
  /** Whether other clients are to know which interrupts the run answers. */
  readonly tellsAnswers: boolean;
  /** The run begins with an answer to these interrupts. */
  answered(interruptIds: readonly string[]): void;
  /** The graph has stopped, and leaves these interrupts waiting for an answer. */
  asked(interrupts: readonly unknown[]): void;
  /** The graph streams nothing any more. */
  end(how: GraphEnd): void;
  /** After `end`: resolves when all that is still to come was told. Undefined if nothing is. */
  settled(): Promise<void> | undefined;
}

/** What LangGraph gives of subgraphs, too, to who has not asked for subgraphs: without saying from where it comes. */
const OF_ALL_GRAPHS = new Set(["messages", "custom", "tools"]);

/** LangGraph before 1.0 says of the root that it has the namespace of no name, and not that it has none. */
const fromRoot = (chunk: StreamChunk): StreamChunk => {
  const [[first, ...deeper], mode, payload] = chunk;
  return first === "" && deeper.length === 0 ? [[], mode, payload] : chunk;
};

/** What LangGraph would have given of a chunk to who has not asked for subgraphs. */
const withoutSubgraphs = (chunk: StreamChunk): StreamChunk | undefined => {
  const [namespace, mode, payload] = chunk;
  if (namespace.length === 0) return chunk;
  return OF_ALL_GRAPHS.has(mode) ? [[], mode, payload] : undefined;
};

/**
 * Tells an attempt over the first wire, as its run was asked to; and over the protocol wire if `tellsProtocol`. Then the graph
 * is asked for more than the first wire shows, and that still shows the same.
 */
export const createTelling = (asked: AskedModes, tellsProtocol: boolean, emit: Emit): Telling => {
  const { langGraph, events } = requestModes(asked.stream_mode);
  const hidden = new Set(Object.keys(asked.headers ?? {}));
  const convert = createChunkConverter(asked.stream_mode, emit, hidden);
  if (!tellsProtocol) {
    return {
      options: {
        streamMode: langGraph,
        subgraphs: asked.stream_subgraphs,
        ...(langGraph.includes("messages") ? { callbacks: [createMessageIds()] } : {}),
      },
      throughEvents: events,
      wholeOf: (chunk) =>
        fromRoot((asked.stream_subgraphs ? chunk : [[], ...(chunk as unknown[])]) as StreamChunk),
      begin: () => undefined,
      tell: convert,
      tellsAnswers: false,
      answered: () => undefined,
      asked: () => undefined,
      end: () => undefined,
      settled: () => undefined,
    };
  }
  const protocol = createProtocolConverter(emit, langGraph.includes("checkpoints"));
  return {
    // With a `version` LangGraph gives the small envelopes of checkpoints, which are no stream mode.
    options: {
      streamMode: [...new Set([...langGraph, ...PROTOCOL_MODES])],
      subgraphs: true,
      version: "v2",
      callbacks: [createMessageIds(), protocol.handler],
    },
    throughEvents: events,
    wholeOf: (chunk) => fromRoot(chunk as StreamChunk),
    begin({ streamTransformers: factories }) {
      if (Array.isArray(factories) && factories.length > 0)
        protocol.transformBy(factories as TransformerFactories);
    },
    tell(chunk) {
      const shown = asked.stream_subgraphs ? chunk : withoutSubgraphs(chunk);
      if (shown !== undefined) convert(shown);
      protocol.convert(chunk);
    },
    tellsAnswers: true,
    answered: (interruptIds) => protocol.answered(interruptIds),
    asked: (interrupts) => protocol.asked(interrupts),
    end: (how) => protocol.end(how),
    settled: () => protocol.settled(),
  };
};
