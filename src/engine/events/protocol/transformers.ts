import { isObject } from "../../../platform/lib/json.ts";

interface TransformedEvent {
  type: "event";
  seq: number;
  method: string;
  params: { namespace: readonly string[]; timestamp: number; node?: string; data: unknown };
}

/** LangGraph's `StreamTransformer`. */
interface Transformer {
  /** A transformer of LangChain, whose results stay in the graph's process. */
  __native?: unknown;
  init(): unknown;
  onRegister?(emitter: { push(namespace: readonly string[], event: TransformedEvent): void }): void;
  process(event: TransformedEvent): boolean;
  finalize?(): unknown;
  fail?(error: unknown): void;
}

/** From `compile({ transformers })`. */
export type TransformerFactories = readonly (() => Transformer)[];

/** The part of LangGraph's `StreamChannel` that its multiplexer uses. */
interface Channel {
  channelName?: unknown;
  _wire(push: (item: unknown) => void): void;
  _close(): void;
  _fail(error: unknown): void;
}

/** Shared by all copies of LangGraph in a process. */
const CHANNEL = Symbol.for("langgraph.stream_channel");
const isChannel = (value: unknown): value is Channel => isObject(value) && CHANNEL in value;

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  isObject(value) && typeof value["then"] === "function";

/** Later final values are not sent. */
const FINAL_VALUES_WITHIN_MS = 5_000;

type SendTransformed = (method: string, namespace: readonly string[], data: unknown, node?: string) => void;

export interface Transformers {
  pass(method: string, namespace: readonly string[], data: unknown, node?: string): boolean;
  /** Resolves when everything is sent. */
  end(isFailed: boolean): Promise<void>;
}

/**
 * Named channels and final values become `custom` events under the names in `thread.extensions`. Undefined if
 * no transformer can produce events for clients.
 */
export const createTransformers = (
  factories: TransformerFactories,
  send: SendTransformed,
): Transformers | undefined => {
  const transformers: Transformer[] = [];
  const channels: Channel[] = [];
  const finalValues: [name: string, value: PromiseLike<unknown>][] = [];
  let seq = 0;
  let current: readonly string[] = [];
  let isOver = false;

  const sendCustom = (name: string, payload: unknown, namespace: readonly string[]): void => {
    if (!isOver) send("custom", namespace, { name, payload });
  };
  const wire = (projection: unknown): void => {
    for (const [key, value] of Object.entries(isObject(projection) ? projection : {})) {
      if (isChannel(value)) {
        const { channelName } = value;
        channels.push(value);
        if (typeof channelName === "string") value._wire((item) => sendCustom(channelName, item, current));
      } else if (isPromise(value)) finalValues.push([key, value]);
    }
  };
  const pass: Transformers["pass"] = (method, namespace, data, node) => {
    const outer = current;
    current = namespace;
    try {
      const params = { namespace, timestamp: Date.now(), ...(node !== undefined && { node }), data };
      const event: TransformedEvent = { type: "event", seq: (seq += 1), method, params };
      // Each transformer gets each event, even if another one hides the event.
      return transformers.map((transformer) => transformer.process(event)).every(Boolean);
    } finally {
      current = outer;
    }
  };

  for (const factory of factories) {
    const transformer = factory();
    if (transformer.__native === true && transformer.onRegister === undefined) continue;
    transformers.push(transformer);
    transformer.onRegister?.({
      push(namespace, { method, params: { data, node } }) {
        if (!isOver && pass(method, namespace, data, node)) send(method, namespace, data, node);
      },
    });
    const projection = transformer.init();
    if (transformer.__native !== true) wire(projection);
  }
  if (transformers.length === 0) return undefined;

  const settle = async (finalized: unknown[]): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, FINAL_VALUES_WITHIN_MS)));
    const values = finalValues.map(async ([name, value]) => sendCustom(name, await value, []));
    await Promise.race([Promise.allSettled([...finalized, ...values]), late]);
    clearTimeout(timer);
    isOver = true;
  };

  return {
    pass,
    async end(isFailed) {
      if (!isFailed) {
        const finalized = transformers.map((transformer) => transformer.finalize?.());
        for (const channel of channels) channel._close();
        return await settle(finalized);
      }
      isOver = true;
      const error = new Error("The run has failed.");
      for (const [, value] of finalValues) void Promise.resolve(value).catch(() => undefined);
      for (const transformer of transformers) transformer.fail?.(error);
      for (const channel of channels) channel._fail(error);
    },
  };
};
