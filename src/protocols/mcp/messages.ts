import { isObject } from "../../platform/lib/json.ts";

/** Older revisions have batches. */
export const messagesIn = (body: unknown): readonly unknown[] => (Array.isArray(body) ? body : [body]);

const countOf = (body: unknown, methods: readonly string[]): number =>
  messagesIn(body).filter(
    (message) =>
      isObject(message) && typeof message["method"] === "string" && methods.includes(message["method"]),
  ).length;

/** Messages that may create a run. */
export const countRuns = (body: unknown): number => countOf(body, ["tools/call", "tasks/update"]);

/** Whether the answer may stay open as long as a run. */
export const staysOpen = (body: unknown): boolean =>
  countOf(body, ["tools/call", "subscriptions/listen"]) > 0;

const wantsProgress = (message: unknown): boolean => {
  const { params } = (isObject(message) ? message : {}) as { params?: unknown };
  const meta = isObject(params) ? params["_meta"] : undefined;
  return isObject(meta) && meta["progressToken"] !== undefined;
};

/** Whether messages may precede the answer. Other answers are JSON, which costs less than a stream. */
export const isStreamed = (body: unknown): boolean =>
  countOf(body, ["subscriptions/listen"]) > 0 || messagesIn(body).some(wantsProgress);
