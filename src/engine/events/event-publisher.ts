import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { toWireJson } from "../../state/values/wire-json.ts";
import { createInnerErrors } from "./inner-errors.ts";
import { createLifecycle, LIFECYCLE_MODES, type Failure } from "./lifecycle.ts";
import { createMessageIds } from "./message-ids.ts";
import { createChunkConverter, requestModes, type Emit, type StreamChunk } from "./modes.ts";
import { envelopeOf, isEnvelope } from "./protocol/checkpoints.ts";
import { createOrigins } from "./origins.ts";
import { createProtocolConverter, PROTOCOL_MODES } from "./protocol/converter.ts";
import type { OpenSubgraph } from "./protocol/open-subgraphs.ts";
import type { GraphEnd, WhenReadable } from "./protocol/subgraphs.ts";
import { createRootMessages } from "./root-messages.ts";
import type { TransformerFactories } from "./protocol/transformers.ts";

export interface AskedModes {
  stream_mode: readonly string[];
  stream_subgraphs: boolean;
  headers?: Readonly<Record<string, string>>;
  /** Clients may resume after a checkpoint that they have. */
  resumable?: boolean;
}

export interface EventPublisher {
  readonly options: {
    streamMode: string[];
    subgraphs: boolean;
    version?: "v2";
    callbacks?: BaseCallbackHandler[];
  };
  readonly throughEvents: boolean;
  /** Adds the namespace, which LangGraph omits without subgraphs. */
  wholeOf(chunk: unknown): StreamChunk;
  begin(graph: { streamTransformers?: unknown }): void;
  publish(chunk: StreamChunk): void;
  /** In the mode `half-done`, an attempt that goes on within a step begins with the state of the ended tasks. */
  readonly publishesHalfDone: boolean;
  halfDone(state: { values: unknown; ended: readonly string[] }): void;
  /** Of the mode `events`. */
  publishInner(event: StreamEvent): void;
  /** Whether other clients see which interrupts the run answers. */
  readonly publishesAnswers: boolean;
  answered(interruptIds: readonly string[]): void;
  asked(interrupts: readonly unknown[]): void;
  reopen(subgraphs: readonly OpenSubgraph[]): void;
  /** Whether ends of subgraphs are published, which clients take as a reason to read the state. */
  readonly endsSubgraphs: boolean;
  /** Whether `end` will publish such ends. */
  hasOpenSubgraphs(): boolean;
  /** Call after the last chunk. `why`: the failure as clients see it. */
  end(how: GraphEnd, why?: Failure): void;
  /** Undefined if everything is published. */
  settled(): Promise<void> | undefined;
}

/**
 * Without subgraphs, LangGraph sends `custom` of all graphs, without their namespace. Before 1.7, messages and tools, too;
 * their namespace is then the task's.
 */
const isOfAllGraphs = ([namespace, mode]: StreamChunk, task: readonly string[]): boolean =>
  mode === "custom" || ((mode === "messages" || mode === "tools") && namespace.length === task.length);

/** Shows what LangGraph sends without subgraphs, of chunks with them. */
const createWithoutSubgraphs = (show: (chunk: StreamChunk) => void) => {
  const rootMessages = createRootMessages();
  return {
    noteReturned: rootMessages.noteReturned,
    show(chunk: StreamChunk, task: readonly string[]): void {
      const [namespace, mode, payload] = chunk;
      if (namespace.length === 0) {
        rootMessages.before(chunk).forEach(show);
        show(chunk);
      } else if (isOfAllGraphs(chunk, task)) show([[], mode, payload]);
      else if (mode === "messages") rootMessages.hide((payload as [{ id?: string }])[0]);
    },
  };
};

/** LangGraph sends the checkpoint's id before the event with its state. */
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

/** Publishes an attempt over the first wire as requested, even if the protocol wire needs more modes. */
export const createEventPublisher = (
  asked: AskedModes,
  publishesProtocol: boolean,
  emit: Emit,
  whenReadable?: WhenReadable,
): EventPublisher => {
  const { langGraph, events } = requestModes(asked.stream_mode);
  const hidden = new Set(Object.keys(asked.headers ?? {}));
  const marking =
    asked.resumable === true && asked.stream_mode.includes("values") ? createMarking(emit) : undefined;
  const convert = createChunkConverter(asked.stream_mode, marking?.emit ?? emit, hidden);
  const lifecycle = asked.stream_mode.includes("lifecycle") ? createLifecycle(emit, whenReadable) : undefined;
  const protocol = publishesProtocol
    ? createProtocolConverter(emit, langGraph.includes("checkpoints"), whenReadable)
    : undefined;
  const isMore = (marking ?? lifecycle ?? protocol) !== undefined;
  const withoutSubgraphs = isMore && !asked.stream_subgraphs ? createWithoutSubgraphs(convert) : undefined;
  const messageIds =
    langGraph.includes("messages") || publishesProtocol
      ? [createMessageIds(langGraph.includes("messages") ? withoutSubgraphs?.noteReturned : undefined)]
      : [];
  const tools = protocol !== undefined || (withoutSubgraphs !== undefined && langGraph.includes("tools"));
  const origins = createOrigins();
  const innerErrors = events ? createInnerErrors() : undefined;
  const callbacks = [
    ...messageIds,
    ...(protocol === undefined ? [] : [protocol.handler]),
    ...(tools ? [origins.handler] : []),
    ...(innerErrors === undefined ? [] : [innerErrors.handler]),
  ];
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
      // With `version`, LangGraph also streams the small envelopes of checkpoints.
      ...((protocol ?? marking) === undefined ? {} : { version: "v2" }),
      ...(callbacks.length === 0 ? {} : { callbacks }),
    },
    throughEvents: events,
    wholeOf: (chunk) =>
      (asked.stream_subgraphs || isMore ? chunk : [[], ...(chunk as unknown[])]) as StreamChunk,
    begin({ streamTransformers: factories }) {
      if (Array.isArray(factories) && factories.length > 0)
        protocol?.transformBy(factories as TransformerFactories);
    },
    publish: !isMore
      ? convert
      : (chunk) => {
          marking?.note(chunk);
          const task = origins.taskOf(chunk);
          const show = () =>
            withoutSubgraphs === undefined ? convert(chunk) : withoutSubgraphs.show(chunk, task);
          if (lifecycle === undefined) show();
          else lifecycle.note(chunk, show);
          protocol?.convert(chunk, task);
        },
    publishesHalfDone: asked.stream_mode.includes("half-done"),
    halfDone: (state) => emit("half-done", () => toWireJson(state)),
    publishInner: (event) => emit("events", () => toWireJson(innerErrors?.shown(event) ?? event)),
    publishesAnswers: publishesProtocol,
    answered: (interruptIds) => protocol?.answered(interruptIds),
    asked: (interrupts) => protocol?.asked(interrupts),
    reopen: (subgraphs) => subgraphs.forEach((subgraph) => protocol?.reopen(subgraph)),
    endsSubgraphs: (lifecycle ?? protocol) !== undefined,
    hasOpenSubgraphs: () => (lifecycle?.hasOpenSubgraphs() ?? protocol?.hasOpenSubgraphs()) === true,
    end(how, why) {
      lifecycle?.end(how, why);
      protocol?.end(how);
    },
    settled: () => protocol?.settled(),
  };
};
