import { BaseCallbackHandler } from "@langchain/core/callbacks/base";

export interface ModelCall {
  readonly runId: string;
  given: number;
  published: number;
  end: { error?: unknown } | undefined;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * LangGraph's chunks do not name their model call, but hold the same message objects as the callbacks.
 * `awaitHandlers`: LangGraph's own handler must run later.
 */
class ModelCallsHandler extends BaseCallbackHandler {
  override name = "ThreadloomModelCalls";
  override awaitHandlers = true;

  constructor(private readonly calls: Pick<ModelCalls, "gave" | "ended">) {
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
    const message = (fields as { chunk?: { message?: unknown } } | undefined)?.chunk?.message;
    this.calls.gave(runId, isObject(message) ? message : undefined);
  }

  override handleLLMEnd(output: unknown, runId: string): void {
    const message = (output as { generations?: { message?: unknown }[][] }).generations?.[0]?.[0]?.message;
    this.calls.ended(runId, {}, isObject(message) ? message : undefined);
  }

  override handleLLMError(error: unknown, runId: string): void {
    this.calls.ended(runId, { error });
  }
}

interface ModelCalls {
  readonly handler: BaseCallbackHandler;
  /** `message`: undefined for models that give LangChain only text. */
  gave(runId: string, message: object | undefined): void;
  /** `whole`: the model's answer, published only if nothing was streamed. */
  ended(runId: string, end: { error?: unknown }, whole?: object): void;
  /** Undefined if no model made the message. */
  of(message: { id?: string }): ModelCall | undefined;
  published(call: ModelCall): void;
}

/** LangGraph's prefix for ids of messages that it makes itself. */
const OF_CALL = "run-";

/** `onOver`: called once when a call has ended and all its messages are published. */
export const createModelCalls = (onOver: (call: ModelCall) => void): ModelCalls => {
  const open = new Map<string, ModelCall>();
  const byMessage = new WeakMap<object, ModelCall>();
  /** By message id, for messages that LangGraph makes. */
  const byId = new Map<string, ModelCall>();

  const endIfPublished = (call: ModelCall): void => {
    if (call.end === undefined || call.published < call.given) return;
    byId.delete(OF_CALL + call.runId);
    onOver(call);
  };
  const gave = (runId: string, message: object | undefined): ModelCall => {
    const call = open.get(runId) ?? { runId, given: 0, published: 0, end: undefined };
    call.given += 1;
    open.set(runId, call);
    if (message === undefined) byId.set(OF_CALL + runId, call);
    else byMessage.set(message, call);
    return call;
  };
  const ended: ModelCalls["ended"] = (runId, end, whole) => {
    const call = open.get(runId) ?? (whole && gave(runId, whole));
    open.delete(runId);
    if (call === undefined) return;
    call.end = end;
    endIfPublished(call);
  };
  return {
    handler: new ModelCallsHandler({ gave, ended }),
    gave,
    ended,
    of: (message) => byMessage.get(message) ?? (message.id === undefined ? undefined : byId.get(message.id)),
    published(call) {
      call.published += 1;
      endIfPublished(call);
    },
  };
};
