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
