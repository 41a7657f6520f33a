/**
 * LangGraph streams the chunks that a chat model gives to its callback `handleLLMNewToken`. The default is that models call it themselves,
 * and some never do: LangGraph then has the whole answer alone. Their chunks are given to the callback here; see docs/decisions/069.
 */

interface Message {
  id?: string | null;
  content?: unknown;
  tool_call_chunks?: readonly unknown[];
  additional_kwargs?: object;
}

/** What a model yields: LangChain's `ChatGenerationChunk`. */
interface Chunk {
  text?: string;
  message?: Message;
}

type NewToken = (
  token: string,
  index?: unknown,
  runId?: unknown,
  parentRunId?: unknown,
  tags?: unknown,
  fields?: { chunk?: Chunk },
) => Promise<void>;

/** LangChain's `CallbackManagerForLLMRun`: the callbacks of one call of a model. */
interface CallManager {
  readonly runId: string;
  readonly handlers?: readonly object[];
  handleLLMNewToken: NewToken;
}

type StreamChunks = (
  messages: unknown,
  options: unknown,
  manager?: CallManager,
) => AsyncIterable<Chunk, unknown>;

interface Model {
  _streamResponseChunks: StreamChunks;
}

/** All calls of a model by LangChain go through one of these two; both are of its version 0.3 and later (1.2.13). */
const CALLS = ["generate", "_streamIterator"] as const;
type BaseModel = Model & Record<(typeof CALLS)[number], (...args: unknown[]) => unknown>;

/**
 * What a callback handler has under this symbol whose run streams messages: the ids of those that models have streamed.
 * Of the symbol registry, since two copies of this package may share one LangChain.
 */
export const STREAMED_MESSAGES = Symbol.for("threadloom.streamed-messages");

interface StreamingHandler {
  readonly [STREAMED_MESSAGES]: Set<string>;
}

/** On functions that were replaced here. */
const GIVES_CHUNKS = Symbol.for("threadloom.gives-chunks");

const isStreaming = (handler: object): handler is StreamingHandler => STREAMED_MESSAGES in handler;

const hasContent = ({ message = {} }: Chunk): boolean => {
  const { content, tool_call_chunks: calls = [], additional_kwargs: others = {} } = message;
  const isEmpty = content === undefined || content === "" || (Array.isArray(content) && content.length === 0);
  return !isEmpty || calls.length > 0 || Object.keys(others).length > 0;
};

/**
 * The chunks of one call. Each is given to the callback where a model would do it, when the next one is asked for. Until a chunk
 * with content has passed without the model's own call they are held back from the callback; a model that calls is left to itself.
 */
const chunksOf = (
  stream: (manager: CallManager) => AsyncIterable<Chunk, unknown>,
  manager: CallManager,
  streamed: Set<string>,
): AsyncIterableIterator<Chunk, unknown> => {
  let caller: "unknown" | "model" | "server" = "unknown";
  let held: Chunk[] = [];

  const noteId = ({ message }: Chunk = {}): void => {
    streamed.add(`run-${manager.runId}`);
    if (message?.id != null) streamed.add(message.id);
  };
  const byModel: NewToken = (...given) => {
    if (caller === "server") return Promise.resolve();
    if (caller === "unknown") noteId(given[5]?.chunk);
    caller = "model";
    held = [];
    return manager.handleLLMNewToken(...given);
  };
  const giveHeld = async (): Promise<void> => {
    const chunks = held;
    held = [];
    for (const chunk of chunks)
      await manager.handleLLMNewToken(chunk.text ?? "", undefined, undefined, undefined, undefined, {
        chunk,
      });
  };
  /** A model may pass on what another one has streamed; that was told already. */
  const isPassedOn = ({ message }: Chunk): boolean => message?.id != null && streamed.has(message.id);
  const decide = async (): Promise<void> => {
    if (caller !== "unknown" || !held.some(hasContent)) return;
    caller = held.some(isPassedOn) ? "model" : "server";
    if (caller === "model") held = [];
    else noteId(held[0]);
    await giveHeld();
  };

  const watching = Object.create(manager, { handleLLMNewToken: { value: byModel } }) as CallManager;
  const chunks = stream(watching)[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<Chunk, unknown>> => {
    if (caller === "server") await giveHeld();
    let result: IteratorResult<Chunk, unknown>;
    try {
      result = await chunks.next();
    } finally {
      await decide();
    }
    if (!result.done && caller !== "model") held.push(result.value);
    return result;
  };
  return {
    next: () => (caller === "model" ? chunks.next() : next()),
    return: async (value) => (await chunks.return?.(value)) ?? { done: true, value },
    throw: (error) => chunks.throw?.(error) ?? Promise.reject(error),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};

const watch = (model: Model, base: Model): void => {
  const stream = model._streamResponseChunks;
  if (stream === base._streamResponseChunks || GIVES_CHUNKS in stream) return;
  const streaming: StreamChunks = function (this: Model, messages, options, manager) {
    const handler = manager?.handlers?.find(isStreaming);
    if (manager === undefined || handler === undefined) return stream.call(this, messages, options, manager);
    return chunksOf(
      (watching) => stream.call(this, messages, options, watching),
      manager,
      handler[STREAMED_MESSAGES],
    );
  };
  // Of the instance, so that a subclass that calls `super` has its chunks given once. Not enumerable: it is not copied.
  Reflect.defineProperty(model, "_streamResponseChunks", {
    configurable: true,
    writable: true,
    value: Object.assign(streaming, { [GIVES_CHUNKS]: true }),
  });
};

/**
 * Has all chat models of a copy of LangChain give their chunks to callbacks, in runs that stream messages.
 * @param module `@langchain/core/language_models/chat_models`. Without the methods that are expected, nothing is changed
 */
export const giveChunks = (module: unknown): void => {
  const { BaseChatModel } = module as { BaseChatModel?: { prototype: BaseModel } };
  const base = BaseChatModel?.prototype;
  if (base === undefined || !CALLS.every((name) => typeof base[name] === "function")) return;
  for (const name of CALLS) {
    const call = base[name];
    if (GIVES_CHUNKS in call) continue;
    const watched = function (this: Model, ...given: unknown[]): unknown {
      watch(this, base);
      return call.apply(this, given);
    };
    base[name] = Object.assign(watched, { [GIVES_CHUNKS]: true });
  }
};
