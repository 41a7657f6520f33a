/**
 * LangGraph streams the tokens that a chat model passes to `handleLLMNewToken`. Some models never call it, so this file
 * passes their chunks (docs/decisions/069).
 */

interface Message {
  id?: string | null;
  content?: unknown;
  tool_call_chunks?: readonly unknown[];
  additional_kwargs?: object;
}

/** LangChain's `ChatGenerationChunk`. */
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

/** Every call of a model in LangChain 0.3 and later (1.2.13) goes through one of these. */
const CALLS = ["generate", "_streamIterator"] as const;
type BaseModel = Model & Record<(typeof CALLS)[number], (...args: unknown[]) => unknown>;

/**
 * The streamed ids, in callback handlers of runs that stream messages. From the symbol registry, because two copies of
 * this package may share one LangChain.
 */
export const STREAMED_MESSAGES = Symbol.for("threadloom.streamed-messages");

interface StreamingHandler {
  readonly [STREAMED_MESSAGES]: Set<string>;
}

const GIVES_CHUNKS = Symbol.for("threadloom.gives-chunks");

const isStreaming = (handler: object): handler is StreamingHandler => STREAMED_MESSAGES in handler;

const hasContent = ({ message = {} }: Chunk): boolean => {
  const { content, tool_call_chunks: calls = [], additional_kwargs: others = {} } = message;
  const isEmpty = content === undefined || content === "" || (Array.isArray(content) && content.length === 0);
  return !isEmpty || calls.length > 0 || Object.keys(others).length > 0;
};

/**
 * Chunks are held until one has content. If the model has not called `handleLLMNewToken` by then, the server calls it
 * for each chunk when the next one is requested; otherwise it never does.
 */
async function* chunksOf(
  stream: (manager: CallManager) => AsyncIterable<Chunk, unknown>,
  manager: CallManager,
  streamed: Set<string>,
): AsyncGenerator<Chunk, void> {
  let tokensFrom = "unknown" as "unknown" | "model" | "server";
  let held: Chunk[] = [];

  const noteId = ({ message }: Chunk = {}): void => {
    streamed.add(`run-${manager.runId}`);
    if (message?.id != null) streamed.add(message.id);
  };
  const byModel: NewToken = (...given) => {
    if (tokensFrom === "server") return Promise.resolve();
    if (tokensFrom === "unknown") noteId(given[5]?.chunk);
    tokensFrom = "model";
    held = [];
    return manager.handleLLMNewToken(...given);
  };
  const giveHeld = async (): Promise<void> => {
    for (const chunk of held.splice(0))
      await manager.handleLLMNewToken(chunk.text ?? "", undefined, undefined, undefined, undefined, {
        chunk,
      });
  };
  /** A model may forward messages that another model has already streamed. */
  const isPassedOn = ({ message }: Chunk): boolean => message?.id != null && streamed.has(message.id);
  const decide = async (): Promise<void> => {
    if (tokensFrom !== "unknown" || !held.some(hasContent)) return;
    if (held.some(isPassedOn)) {
      tokensFrom = "model";
      held = [];
      return;
    }
    tokensFrom = "server";
    noteId(held[0]);
    await giveHeld();
  };

  const watching = Object.create(manager, { handleLLMNewToken: { value: byModel } }) as CallManager;
  try {
    for await (const chunk of stream(watching)) {
      await decide();
      if (tokensFrom !== "model") held.push(chunk);
      yield chunk;
      if (tokensFrom === "server") await giveHeld();
    }
    await decide();
  } catch (error) {
    await decide();
    throw error;
  }
}

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
  // Set on the instance, so that a subclass that calls `super` passes its chunks once. Not enumerable, so it is not
  // copied.
  Reflect.defineProperty(model, "_streamResponseChunks", {
    configurable: true,
    writable: true,
    value: Object.assign(streaming, { [GIVES_CHUNKS]: true }),
  });
};

/**
 * Patches `BaseChatModel.prototype`, unless the expected methods are missing.
 * @param module `@langchain/core/language_models/chat_models`
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
