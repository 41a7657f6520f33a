import type { PublishProtocolEvent } from "./events.ts";

/** What LangGraph puts beside the names of nodes in a chunk of `updates`. */
const NO_NODES = new Set(["__interrupt__", "__metadata__"]);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** The state of a graph. Interrupts are told by `input.requested`; a chunk that holds nothing else is no event. */
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

/** The nodes that a chunk of `updates` is about. */
export const nodesOfUpdate = (payload: unknown): string[] => returnedIn(payload).map(([node]) => node);

/** What each node has returned: `{node, values}`, an event for each. Answers the nodes. */
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
 * What a node has written: `{name, payload, ...payload}`. JavaScript hands out `payload`, Python all of it, and `name` is
 * what `custom:NAME` subscribes to: it stands first, where readers find it without parsing the rest.
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
