import type { PublishProtocolEvent } from "./events.ts";

const NO_NODES = new Set(["__interrupt__", "__metadata__"]);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

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
      () => ({ node, values: isObject(values) ? values : values == null ? {} : { value: values } }),
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
    isObject(payload) && !Array.isArray(payload)
      ? { ...(typeof payload["name"] === "string" && { name: payload["name"] }), payload, ...payload }
      : { payload },
  );
