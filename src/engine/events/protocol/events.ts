import { isObject } from "../../../platform/lib/json.ts";

/** Readers add the root's lifecycle and `input.requested`. */
export type ProtocolMethod =
  | "values"
  | "updates"
  | "messages"
  | "tools"
  | "lifecycle"
  | "custom"
  | "tasks"
  | "checkpoints"
  | "input.answered";

/** `params` of an event's frame. */
export interface ProtocolParams {
  /** The path of the graph; [] is the root. */
  namespace: readonly string[];
  /** Milliseconds since 1970. */
  timestamp: number;
  node?: string;
  data: unknown;
}

/** `data` is called only if the event has a reader. */
export type PublishProtocolEvent = (
  method: ProtocolMethod,
  namespace: readonly string[],
  data: () => unknown,
  node?: string,
) => void;

/** LangGraph sends whole checkpoints, or the small form that clients get. */
interface WholeCheckpoint {
  config?: { configurable?: { checkpoint_id?: string } };
  parentConfig?: WholeCheckpoint["config"];
  metadata?: { step?: number; source?: string };
}

/** Undefined for a checkpoint without an id. `isWhole`: LangGraph has sent no envelope. */
export const envelopeOf = (
  payload: unknown,
): { id: string; isWhole: boolean; envelope: object } | undefined => {
  if (isObject(payload) && typeof payload["id"] === "string" && !("config" in payload))
    return { id: payload["id"], isWhole: false, envelope: payload };
  const { config, parentConfig, metadata } = payload as WholeCheckpoint;
  const id = config?.configurable?.checkpoint_id;
  const parent_id = parentConfig?.configurable?.checkpoint_id;
  const { step, source } = metadata ?? {};
  return id === undefined ? undefined : { id, isWhole: true, envelope: { id, parent_id, step, source } };
};

const NO_NODES = new Set(["__interrupt__", "__metadata__"]);

export const publishValues = (
  publish: PublishProtocolEvent,
  namespace: readonly string[],
  payload: unknown,
): void => {
  if (!isObject(payload) || !Object.hasOwn(payload, "__interrupt__")) {
    return publish("values", namespace, () => payload);
  }
  const { __interrupt__: _, ...values } = payload;
  if (Object.keys(values).length > 0) publish("values", namespace, () => values);
};

const returnedIn = (payload: unknown): [node: string, values: unknown][] =>
  isObject(payload) ? Object.entries(payload).filter(([node]) => !NO_NODES.has(node)) : [];

export const nodesOfUpdate = (payload: unknown): string[] => returnedIn(payload).map(([node]) => node);

export const publishUpdates = (
  publish: PublishProtocolEvent,
  namespace: readonly string[],
  payload: unknown,
): string[] => {
  const returned = returnedIn(payload);
  for (const [node, values] of returned) {
    publish(
      "updates",
      namespace,
      () => ({
        node,
        values: typeof values === "object" ? (values ?? {}) : values === undefined ? {} : { value: values },
      }),
      node,
    );
  }
  return returned.map(([node]) => node);
};

/**
 * JavaScript clients read `payload`, Python clients the whole object. `name` comes first, because readers
 * match `custom:NAME` without parsing the rest.
 */
export const publishCustom = (
  publish: PublishProtocolEvent,
  namespace: readonly string[],
  payload: unknown,
): void =>
  publish("custom", namespace, () =>
    isObject(payload)
      ? { ...(typeof payload["name"] === "string" && { name: payload["name"] }), payload, ...payload }
      : { payload },
  );
