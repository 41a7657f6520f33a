import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { createLifecycle, LIFECYCLE_MODES, type Failure } from "./lifecycle.ts";
import { createMessageIds } from "./message-ids.ts";
import { createChunkConverter, requestModes, type Emit, type StreamChunk } from "./modes.ts";
import { envelopeOf, isEnvelope } from "./protocol/checkpoints.ts";
import { createProtocolConverter, PROTOCOL_MODES } from "./protocol/converter.ts";
import type { GraphEnd } from "./protocol/subgraphs.ts";
import type { TransformerFactories } from "./protocol/transformers.ts";

/** What a run was asked to tell over the first wire. */
export interface AskedModes {
  stream_mode: readonly string[];
  stream_subgraphs: boolean;
  /** See RunKwargs. */
  headers?: Readonly<Record<string, string>>;
  /** Who comes back may name the checkpoint that he has. */
  resumable?: boolean;
}

/** What an attempt tells, and what its graph is asked for so that it can. */
export interface EventPublisher {
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
  publish(chunk: StreamChunk): void;
  /** Whether other clients are to know which interrupts the run answers. */
  readonly publishesAnswers: boolean;
  /** The run begins with an answer to these interrupts. */
  answered(interruptIds: readonly string[]): void;
  /** The graph has stopped, and leaves these interrupts waiting for an answer. */
  asked(interrupts: readonly unknown[]): void;
  /** The graph streams nothing any more. `why` it has failed, as clients see it. */
  end(how: GraphEnd, why?: Failure): void;
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

/** Has the event that shows the root's state carry the checkpoint of that, which LangGraph names before it. */
const createMarking = (emit: Emit) => {
  let named: string | undefined;
  return {
    emit: ((event, data) => {
      const shows = named !== undefined && (event === "values" || event === "checkpoints");
      emit(event, data, shows ? named : undefined);
      if (shows) named = undefined;
    }) satisfies Emit,
    note([namespace, mode, payload]: StreamChunk): void {
      if (mode === "checkpoints" && namespace.length === 0)
        named = (isEnvelope(payload) ? payload : envelopeOf(payload))?.id;
    },
  };
};

/**
 * Tells an attempt over the first wire, as its run was asked to; and over the protocol wire if `publishesProtocol`. Where the graph
 * has to be asked for more than its run was, the first wire still shows the same.
 */
export const createEventPublisher = (
  asked: AskedModes,
  publishesProtocol: boolean,
  emit: Emit,
): EventPublisher => {
  const { langGraph, events } = requestModes(asked.stream_mode);
  const hidden = new Set(Object.keys(asked.headers ?? {}));
  const marking =
    asked.resumable === true && asked.stream_mode.includes("values") ? createMarking(emit) : undefined;
  const convert = createChunkConverter(asked.stream_mode, marking?.emit ?? emit, hidden);
  const lifecycle = asked.stream_mode.includes("lifecycle") ? createLifecycle(emit) : undefined;
  const protocol = publishesProtocol
    ? createProtocolConverter(emit, langGraph.includes("checkpoints"))
    : undefined;
  const messageIds = langGraph.includes("messages") || publishesProtocol ? [createMessageIds()] : [];
  const isMore = (marking ?? lifecycle ?? protocol) !== undefined;
  const show = (chunk: StreamChunk): void => {
    const shown = asked.stream_subgraphs || !isMore ? chunk : withoutSubgraphs(chunk);
    if (shown !== undefined) convert(shown);
  };
  const callbacks = [...messageIds, ...(protocol === undefined ? [] : [protocol.handler])];
  return {
    options: {
      streamMode: [
        ...new Set([
          ...langGraph,
          ...(protocol === undefined ? [] : PROTOCOL_MODES),
          ...(lifecycle === undefined ? [] : LIFECYCLE_MODES),
        ]),
      ],
      subgraphs: asked.stream_subgraphs || isMore,
      // With a `version` LangGraph gives the small envelopes of checkpoints, which are no stream mode.
      ...((protocol ?? marking) === undefined ? {} : { version: "v2" }),
      ...(callbacks.length === 0 ? {} : { callbacks }),
    },
    throughEvents: events,
    wholeOf: (chunk) =>
      fromRoot((asked.stream_subgraphs || isMore ? chunk : [[], ...(chunk as unknown[])]) as StreamChunk),
    begin({ streamTransformers: factories }) {
      if (Array.isArray(factories) && factories.length > 0)
        protocol?.transformBy(factories as TransformerFactories);
    },
    publish: !isMore
      ? convert
      : (chunk) => {
          marking?.note(chunk);
          if (lifecycle === undefined) show(chunk);
          else lifecycle.note(chunk, () => show(chunk));
          protocol?.convert(chunk);
        },
    publishesAnswers: publishesProtocol,
    answered: (interruptIds) => protocol?.answered(interruptIds),
    asked: (interrupts) => protocol?.asked(interrupts),
    end(how, why) {
      lifecycle?.end(how, why);
      protocol?.end(how);
    },
    settled: () => protocol?.settled(),
  };
};
