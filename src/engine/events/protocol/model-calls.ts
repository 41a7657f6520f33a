import { BaseCallbackHandler } from "@langchain/core/callbacks/base";

/** One call of a model. What it gives is what LangGraph streams in the mode `messages`. */
export interface ModelCall {
  readonly runId: string;
  /** How many messages the model has given, and how many of them were told. */
  given: number;
  published: number;
  /** How the call has ended, if it has. */
  end: { error?: unknown } | undefined;
}

interface GivenChunk {
  chunk?: { message?: unknown };
}
interface GivenOutput {
  generations?: { message?: unknown }[][];
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * Which call of a model a streamed message is from, and when that call ends: LangGraph's chunks say neither. They hold the very
 * objects that callbacks are given, so those are looked up.
 *
 * `awaitHandlers`: LangChain may deliver callbacks in the background. These must come before LangGraph's own.
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
    const message = (fields as GivenChunk | undefined)?.chunk?.message;
    this.calls.gave(runId, isObject(message) ? message : undefined);
  }

  override handleLLMEnd(output: unknown, runId: string): void {
    const message = (output as GivenOutput).generations?.[0]?.[0]?.message;
    this.calls.ended(runId, {}, isObject(message) ? message : undefined);
  }

  override handleLLMError(error: unknown, runId: string): void {
    this.calls.ended(runId, { error });
  }
}

export interface ModelCalls {
  readonly handler: BaseCallbackHandler;
  /** `message`: undefined of a model that gives LangChain a text alone. */
  gave(runId: string, message: object | undefined): void;
  /** `whole`: what the model has answered; told by itself only if nothing was streamed. */
  ended(runId: string, end: { error?: unknown }, whole?: object): void;
  /** The call that has given this message; undefined if no model has. */
  of(message: { id?: string }): ModelCall | undefined;
  /** To be called when a message of the call was told. */
  published(call: ModelCall): void;
}

/** What LangGraph puts before the id of a call, where it makes the message of it itself. */
const OF_CALL = "run-";

/** `onOver`: called once when a call has ended and all that it gave was told. */
export const createModelCalls = (onOver: (call: ModelCall) => void): ModelCalls => {
  const open = new Map<string, ModelCall>();
  const byMessage = new WeakMap<object, ModelCall>();
  /** Those whose messages LangGraph makes, by their ids. */
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
