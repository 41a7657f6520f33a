import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { errorForClients } from "../../../platform/domain/error-for-clients.ts";
import { isObject } from "../../../platform/lib/json.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import type { Emit } from "../modes.ts";
import { PROTOCOL_EVENT_PREFIX } from "../wires.ts";
import {
  createBlocks,
  type BlockEvent,
  type Blocks,
  isChunk,
  slicesOf,
  type StreamedMessage,
} from "./blocks.ts";
import type { ProtocolMethod } from "./events.ts";

interface ModelCall {
  readonly runId: string;
  given: number;
  published: number;
  end: { error?: unknown } | undefined;
}

/** LangGraph's prefix for ids of messages that it makes itself. */
const OF_CALL = "run-";

/**
 * LangGraph's chunks do not name their model call, but hold the same message objects as the callbacks.
 * `awaitHandlers`: LangGraph's own handler must run later.
 */
class ModelCalls extends BaseCallbackHandler {
  override name = "ThreadloomModelCalls";
  override awaitHandlers = true;
  private readonly open = new Map<string, ModelCall>();
  private readonly byMessage = new WeakMap<object, ModelCall>();
  /** By message id, for messages that LangGraph makes. */
  private readonly byId = new Map<string, ModelCall>();

  /** `onOver`: called once when a call has ended and all its messages are published. */
  constructor(private readonly onOver: (call: ModelCall) => void) {
    super();
  }

  override handleLLMNewToken(
    _token: string,
    _index: unknown,
    runId: string,
    _parentRunId?: string,
    _tags?: string[],
    fields?: unknown,
  ): void {
    this.gave(runId, (fields as { chunk?: { message?: unknown } } | undefined)?.chunk?.message);
  }

  override handleLLMEnd(output: unknown, runId: string): void {
    // The whole answer is published only if nothing was streamed.
    const whole = (output as { generations?: { message?: unknown }[][] }).generations?.[0]?.[0]?.message;
    if (isObject(whole) && !this.open.has(runId)) this.gave(runId, whole);
    this.ended(runId, {});
  }

  override handleLLMError(error: unknown, runId: string): void {
    this.ended(runId, { error });
  }

  /** Undefined if no model made the message. */
  of(message: { id?: string }): ModelCall | undefined {
    return this.byMessage.get(message) ?? (message.id === undefined ? undefined : this.byId.get(message.id));
  }

  published(call: ModelCall): void {
    call.published += 1;
    this.endIfPublished(call);
  }

  /** `message`: undefined for models that give LangChain only text. */
  private gave(runId: string, message: unknown): void {
    const call = this.open.get(runId) ?? { runId, given: 0, published: 0, end: undefined };
    call.given += 1;
    this.open.set(runId, call);
    if (isObject(message)) this.byMessage.set(message, call);
    else this.byId.set(OF_CALL + runId, call);
  }

  private ended(runId: string, end: { error?: unknown }): void {
    const call = this.open.get(runId);
    this.open.delete(runId);
    if (call === undefined) return;
    call.end = end;
    this.endIfPublished(call);
  }

  private endIfPublished(call: ModelCall): void {
    if (call.end === undefined || call.published < call.given) return;
    this.byId.delete(OF_CALL + call.runId);
    this.onOver(call);
  }
}

type Metadata = Record<string, unknown>;

interface OpenMessage {
  publish(data: object): void;
  blocks: Blocks;
  usage: Record<string, unknown> | undefined;
  responseMetadata: Record<string, unknown>;
}

const EVENT: `${typeof PROTOCOL_EVENT_PREFIX}${ProtocolMethod}` = `${PROTOCOL_EVENT_PREFIX}messages`;

/** Plain text needs no check for values that JSON can't represent. */
const isTextDelta = (data: object): boolean => {
  const { event, delta } = data as Partial<Extract<BlockEvent, { event: "content-block-delta" }>>;
  return event === "content-block-delta" && delta?.type === "text-delta" && typeof delta["text"] === "string";
};

/** The JSON of a non-empty object without its braces. Replaces content that JSON can't represent. */
const membersOf = (data: object): string => {
  if (isTextDelta(data)) return JSON.stringify(data).slice(1, -1);
  try {
    return toWireJson(data).slice(1, -1);
  } catch {
    return JSON.stringify({ ...data, content: { type: "non_standard", value: {} } }).slice(1, -1);
  }
};

const isScalar = (value: unknown): boolean =>
  value === null || ["string", "number", "boolean"].includes(typeof value);

/** The protocol allows only scalars in metadata. */
const scalarsOf = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && isScalar(value)));

const startMetadata = (metadata: Metadata, { response_metadata = {} }: StreamedMessage) =>
  scalarsOf({
    langgraph_node: metadata["langgraph_node"],
    provider: response_metadata["model_provider"] ?? metadata["ls_provider"],
    model: response_metadata["model_name"] ?? metadata["ls_model_name"],
    model_type: metadata["ls_model_type"],
    system_fingerprint: response_metadata["system_fingerprint"],
    service_tier: response_metadata["service_tier"],
  });

/** Streamed messages have `ls_model_type`; pushed messages have neither this field nor `name`. */
const isReturned = ({ name, langgraph_node, ls_model_type }: Metadata): boolean =>
  name !== undefined && name === langgraph_node && ls_model_type === undefined;

const roleOf = (message: object): string => {
  const type =
    "_getType" in message && typeof message._getType === "function" ? (message._getType() as unknown) : "ai";
  return type === "human" || type === "system" || type === "tool" ? type : "ai";
};

const addUsage = (
  sum: Record<string, unknown> | undefined,
  part: Record<string, unknown>,
): Record<string, unknown> => {
  const usage = new Map(Object.entries(sum ?? {}));
  for (const [key, value] of Object.entries(part)) {
    const before = usage.get(key);
    usage.set(key, typeof value === "number" && typeof before === "number" ? before + value : value);
  }
  return Object.fromEntries(usage);
};

/**
 * The channel `messages`. Omits messages that a node only returns: values and updates contain them, so
 * clients would show them twice.
 */
export const createMessages = (
  emit: Emit,
  passes: (namespace: readonly string[], data: object, ids: object, node: string | undefined) => boolean,
) => {
  const open = new Map<ModelCall, OpenMessage>();
  const published = new WeakSet<object>();

  const start = (
    message: StreamedMessage & object,
    metadata: Metadata,
    namespace: readonly string[],
    runId: string,
  ): OpenMessage => {
    const { id } = message;
    const { langgraph_node: node } = metadata;
    // Concatenated by hand: serializing the whole event of each token took twice as long as all other work.
    const head = `{"namespace":${JSON.stringify(namespace)},"timestamp":`;
    const middle = typeof node === "string" ? `,"node":${JSON.stringify(node)},"data":{` : `,"data":{`;
    // Python clients distinguish concurrent messages by `id`, JavaScript clients by `run_id`.
    const tail = `,"id":${JSON.stringify(id ?? runId)},"run_id":${JSON.stringify(runId)}}}`;
    const ids = { id: id ?? runId, run_id: runId };
    const publishEvent = (data: object): void => {
      if (!passes(namespace, data, ids, typeof node === "string" ? node : undefined)) return;
      emit(EVENT, () => `${head}${Date.now()}${middle}${membersOf(data)}${tail}`);
    };
    publishEvent({
      event: "message-start",
      role: roleOf(message),
      metadata: startMetadata(metadata, message),
    });
    return {
      publish: publishEvent,
      blocks: createBlocks(publishEvent),
      usage: undefined,
      responseMetadata: {},
    };
  };
  const add = (to: OpenMessage, message: StreamedMessage): void => {
    for (const slice of slicesOf(message)) to.blocks.add(slice);
    if (message.usage_metadata) to.usage = addUsage(to.usage, message.usage_metadata);
    if (message.response_metadata) Object.assign(to.responseMetadata, scalarsOf(message.response_metadata));
  };
  const finish = ({ publish: publishEvent, blocks, usage, responseMetadata }: OpenMessage): void => {
    blocks.end();
    const { finish_reason: reason } = responseMetadata;
    publishEvent({
      event: "message-finish",
      ...(typeof reason === "string" ? { reason } : {}),
      ...(usage === undefined ? {} : { usage }),
      ...(Object.keys(responseMetadata).length === 0 ? {} : { metadata: responseMetadata }),
    });
  };
  const close = (call: ModelCall, end: { error?: unknown }): void => {
    const message = open.get(call);
    open.delete(call);
    if (message === undefined) return;
    if ("error" in end) message.publish({ event: "error", message: errorForClients(end.error).message });
    else finish(message);
  };
  const calls = new ModelCalls((call) => close(call, call.end ?? {}));

  return {
    handler: calls as BaseCallbackHandler,

    add(payload: unknown, namespace: readonly string[]): void {
      const [message, metadata] = payload as [StreamedMessage & object, Metadata];
      if (isReturned(metadata)) return;
      const call = calls.of(message);
      if (call === undefined) {
        if (message.id === undefined || isChunk(message) || "name" in metadata) return;
        const pushed = start(message, metadata, namespace, message.id);
        add(pushed, message);
        return finish(pushed);
      }
      // A model that forwards another model's chunks sends each chunk again.
      if (!published.has(message)) {
        published.add(message);
        const growing = open.get(call) ?? start(message, metadata, namespace, call.runId);
        open.set(call, growing);
        add(growing, message);
      }
      calls.published(call);
    },

    end(isFailed: boolean): void {
      for (const call of [...open.keys()]) close(call, isFailed ? { error: "The run has failed." } : {});
    },
  };
};
