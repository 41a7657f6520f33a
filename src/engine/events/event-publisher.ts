import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { isObject } from "../../platform/lib/json.ts";
import { isMessage } from "../../state/values/types/message.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import { createInnerErrors, createMessageIds, createOrigins, taskIn } from "./callbacks.ts";
import { createLifecycle, LIFECYCLE_MODES, type Failure } from "./lifecycle.ts";
import { createChunkConverter, requestModes, type Emit, type StreamChunk } from "./modes.ts";
import { createProtocolConverter, PROTOCOL_MODES } from "./protocol/converter.ts";
import { envelopeOf } from "./protocol/events.ts";
import type { GraphEnd, WhenReadable } from "./protocol/subgraphs.ts";
import type { TransformerFactories } from "./protocol/transformers.ts";

export interface AskedModes {
  stream_mode: readonly string[];
  stream_subgraphs: boolean;
  headers?: Readonly<Record<string, string>>;
  /** Clients may resume after a checkpoint that they have. */
  resumable?: boolean;
}

type Metadata = Readonly<Record<string, unknown>>;
interface Returned {
  messages: readonly { id?: string }[];
  metadata: Metadata;
}

const areMessages = (values: readonly unknown[]): object[] =>
  values.filter((value): value is object => typeof value === "object" && value !== null && isMessage(value));

/** As LangGraph looks for them. */
const messagesIn = (output: unknown): object[] => {
  if (Array.isArray(output)) return areMessages(output);
  if (!isObject(output)) return [];
  if (output["lg_name"] === "Command") return messagesIn(output["update"]);
  return isMessage(output) ? [output] : areMessages(Object.values(output).flat());
};

/**
 * Without subgraphs, LangGraph sends `custom` of all graphs, without their namespace. Before 1.7, messages and tools, too;
 * their namespace is then the task's.
 */
const isOfAllGraphs = ([namespace, mode]: StreamChunk, task: readonly string[]): boolean =>
  mode === "custom" || ((mode === "messages" || mode === "tools") && namespace.length === task.length);

/**
 * Shows what LangGraph sends without subgraphs, of chunks with them. LangGraph sends each message once: here with the
 * subgraph, and for a request without subgraphs with the node of the root that returns the message.
 */
const createWithoutSubgraphs = (show: (chunk: StreamChunk) => void) => {
  /** By task. */
  const returned = new Map<string, Returned>();
  const hidden = new Set<string>();

  const take = ({ messages, metadata }: Returned): void => {
    for (const message of messages)
      if (message.id !== undefined && hidden.delete(message.id)) show([[], "messages", [message, metadata]]);
  };
  /** Shows the messages that a node has returned before the payload with its result. */
  const takeBefore = (mode: string, payload: unknown): void => {
    if (returned.size === 0 || !isObject(payload)) return;
    if (mode === "values") return returned.forEach(take);
    if (mode === "updates")
      return returned.forEach((one) => {
        if (Object.hasOwn(payload, String(one.metadata["langgraph_node"]))) take(one);
      });
    if (mode !== "tasks" || !("result" in payload)) return;
    const task = `${String(payload["name"])}:${String(payload["id"])}`;
    const ended = returned.get(task);
    returned.delete(task);
    if (ended !== undefined) take(ended);
  };

  return {
    /** A node of any graph has ended. */
    noteReturned(output: unknown, metadata: Metadata): void {
      const task = taskIn(metadata);
      if (task === undefined || task.includes("|")) return;
      const messages = messagesIn(output);
      if (messages.length > 0) returned.set(task, { messages, metadata });
    },
    show(chunk: StreamChunk, task: readonly string[]): void {
      const [namespace, mode, payload] = chunk;
      if (namespace.length === 0) {
        takeBefore(mode, payload);
        return show(chunk);
      }
      if (isOfAllGraphs(chunk, task)) return show([[], mode, payload]);
      const [{ id }] = mode === "messages" ? (payload as [{ id?: string }]) : [{}];
      if (id !== undefined) hidden.add(id);
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
      if (mode === "checkpoints" && namespace.length === 0) named = envelopeOf(payload)?.id;
    },
  };
};

/**
 * Turns an attempt's chunks into events: over the first wire as requested, even if the protocol wire needs more modes, and
 * over the protocol wire if the run has readers there.
 */
export class EventPublisher {
  /** For the graph's stream. */
  readonly options: {
    streamMode: string[];
    subgraphs: boolean;
    version?: "v2";
    callbacks?: BaseCallbackHandler[];
  };
  readonly throughEvents: boolean;
  /** In the mode `half-done`, an attempt that goes on within a step begins with the state of the ended tasks. */
  readonly publishesHalfDone: boolean;
  /** Whether ends of subgraphs are published, which clients take as a reason to read the state. */
  readonly endsSubgraphs: boolean;
  /** The graph streams more than the request asked for. */
  readonly #isMore: boolean;
  readonly #convert: (chunk: StreamChunk) => void;
  readonly #marking: ReturnType<typeof createMarking> | undefined;
  readonly #lifecycle: ReturnType<typeof createLifecycle> | undefined;
  readonly #withoutSubgraphs: ReturnType<typeof createWithoutSubgraphs> | undefined;
  readonly #origins = createOrigins();
  readonly #innerErrors: ReturnType<typeof createInnerErrors> | undefined;
  /** Undefined: other clients do not see the run over the protocol wire. */
  readonly protocol: ReturnType<typeof createProtocolConverter> | undefined;

  constructor(
    asked: AskedModes,
    publishesProtocol: boolean,
    private readonly emit: Emit,
    whenReadable?: WhenReadable,
  ) {
    const { langGraph, events } = requestModes(asked.stream_mode);
    if (asked.resumable === true && asked.stream_mode.includes("values")) this.#marking = createMarking(emit);
    const hidden = new Set(Object.keys(asked.headers ?? {}));
    this.#convert = createChunkConverter(asked.stream_mode, this.#marking?.emit ?? emit, hidden);
    if (asked.stream_mode.includes("lifecycle")) this.#lifecycle = createLifecycle(emit, whenReadable);
    if (publishesProtocol)
      this.protocol = createProtocolConverter(emit, langGraph.includes("checkpoints"), whenReadable);
    this.endsSubgraphs = (this.#lifecycle ?? this.protocol) !== undefined;
    this.#isMore = this.endsSubgraphs || this.#marking !== undefined;
    if (this.#isMore && !asked.stream_subgraphs)
      this.#withoutSubgraphs = createWithoutSubgraphs(this.#convert);
    if (events) this.#innerErrors = createInnerErrors();
    this.throughEvents = events;
    this.publishesHalfDone = asked.stream_mode.includes("half-done");
    const sendsMessages = langGraph.includes("messages");
    const needsTools = publishesProtocol || (this.#withoutSubgraphs && langGraph.includes("tools"));
    const callbacks = [
      (sendsMessages || publishesProtocol) &&
        createMessageIds(sendsMessages ? this.#withoutSubgraphs?.noteReturned : undefined),
      this.protocol?.handler,
      needsTools && this.#origins.handler,
      this.#innerErrors?.handler,
    ].filter((callback) => typeof callback === "object");
    this.options = {
      streamMode: [
        ...new Set([
          ...langGraph,
          ...(publishesProtocol ? PROTOCOL_MODES : []),
          ...(this.#lifecycle === undefined ? [] : LIFECYCLE_MODES),
        ]),
      ],
      subgraphs: asked.stream_subgraphs || this.#isMore,
      // With `version`, LangGraph also streams the small envelopes of checkpoints.
      ...((this.protocol ?? this.#marking) && { version: "v2" }),
      ...(callbacks.length > 0 && { callbacks }),
    };
  }

  begin({ streamTransformers: factories }: { streamTransformers?: unknown }): void {
    if (Array.isArray(factories) && factories.length > 0)
      this.protocol?.transformBy(factories as TransformerFactories);
  }

  /** `given`: without the namespace, which LangGraph omits without subgraphs. */
  wholeOf(given: unknown): StreamChunk {
    return (this.options.subgraphs ? given : [[], ...(given as unknown[])]) as StreamChunk;
  }

  publish(chunk: StreamChunk): void {
    if (!this.#isMore) return this.#convert(chunk);
    this.#marking?.note(chunk);
    const task = this.#origins.taskOf(chunk);
    const show = (): void =>
      this.#withoutSubgraphs === undefined ? this.#convert(chunk) : this.#withoutSubgraphs.show(chunk, task);
    if (this.#lifecycle === undefined) show();
    else this.#lifecycle.note(chunk, show);
    this.protocol?.convert(chunk, task);
  }

  /** Of the mode `events`. */
  publishInner(event: StreamEvent): void {
    this.emit("events", () => toWireJson(this.#innerErrors?.shown(event) ?? event));
  }

  halfDone(state: { values: unknown; ended: readonly string[] }): void {
    this.emit("half-done", () => toWireJson(state));
  }

  /** Whether `end` will publish ends of subgraphs. */
  hasOpenSubgraphs(): boolean {
    return (this.#lifecycle ?? this.protocol)?.hasOpenSubgraphs() === true;
  }

  /** Call after the last chunk. `why`: the failure as clients see it. */
  end(how: GraphEnd, why?: Failure): void {
    this.#lifecycle?.end(how, why);
    this.protocol?.end(how);
  }
}
