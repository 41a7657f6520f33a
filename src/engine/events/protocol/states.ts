import type { PublishProtocolEvent } from "./events.ts";

/** Keys beside node names in a chunk of `updates`. */
const NO_NODES = new Set(["__interrupt__", "__metadata__"]);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/**
 * Publishes the state of a graph. Interrupts are left out (`input.requested` has them); a chunk of interrupts
 * alone is no event.
 */
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

/** The nodes in a chunk of `updates`. */
export const nodesOfUpdate = (payload: unknown): string[] => returnedIn(payload).map(([node]) => node);

/** Publishes `{node, values}` for each node, and returns the nodes. */
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
      () => ({ node, values: isObject(values) ? values : values == null ? {} : { value: values } }),
      node,
    );
  }
  return returned.map(([node]) => node);
};

/**
 * Publishes `{name, payload, ...payload}`: JavaScript clients read `payload`, Python clients all of it.
 * `name` comes first, because readers match `custom:NAME` without parsing the rest.
 */
export const publishCustom = (
  publish: PublishProtocolEvent,
  namespace: readonly string[],
  payload: unknown,
): void =>
  publish("custom", namespace, () =>
    isObject(payload) && !Array.isArray(payload)
      ? { ...(typeof payload["name"] === "string" && { name: payload["name"] }), payload, ...payload }
      : { payload },
  );
