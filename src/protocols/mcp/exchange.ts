import type { ClientCapabilities } from "@modelcontextprotocol/server";
import type { HeldAccess, Reauthorize } from "../../access/reauthorization.ts";
import type { Caller } from "../../access/caller.ts";
import { isObject } from "../../platform/lib/json.ts";
import type { CreatedRun } from "../../api/runs/joining/results.ts";
import type { RunService } from "../../api/runs/service.ts";
import { createTimeSlicer } from "../../platform/lib/time-slicer.ts";
import { eventsOf } from "../calls/outcome.ts";

/** A request over HTTP, and its answer. */
export interface Exchange {
  caller: Caller;
  /** For the graph's configuration. */
  headers: Readonly<Record<string, string>> | undefined;
  holdAccess(ask: Reauthorize): HeldAccess;
  /** Aborts when the answer's connection is closed, also by this server. */
  signal: AbortSignal;
  /** Calls the listener if the client closes the connection before it has the answer. */
  onLeave(listener: () => void): void;
  /** Whether the client has taken what was sent. */
  isTaken(): boolean;
  /** The run is stored: the message is no longer needed, and errors can no longer be a status of HTTP. */
  begin(): void;
  /** Ends the request with the HTTP status of this error. False: too late, or the message is one of a batch. */
  refuse(error: unknown): boolean;
  onFault(error: unknown, what: string): void;
}

/** What the package reads of a request. A web `Request` costs as much as all the rest of the exchange. */
export type MessageRequest = Pick<Request, "method" | "signal"> & { headers: Pick<Headers, "get"> };

export const TASKS = "io.modelcontextprotocol/tasks";

/** What the client of a call can do. */
export interface Client {
  /** Closing the answer cancels the call (revision 2026-07-28). */
  cancelsByLeaving: boolean;
  capabilities: ClientCapabilities;
}

export const usesTasks = ({ capabilities }: Client): boolean =>
  capabilities.extensions !== undefined && Object.hasOwn(capabilities.extensions, TASKS);

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

/** Parsing events must not delay other requests. */
const SLICE_MS = 10;

export type OnProgress = (progress: number, message: string) => Promise<void>;

interface Step {
  name: string;
  ended: boolean;
  asked?: boolean;
  wrote?: boolean;
}

/** A node that wrote nothing may have asked or failed. */
const hasSucceeded = ({ ended, asked, wrote }: Step): boolean => ended && wrote === true && asked !== true;

export const createProgressReporter = ({ readCreated }: Pick<RunService["joining"], "readCreated">) => {
  const slicer = createTimeSlicer(SLICE_MS);

  /** Reports the nodes of a run until its end, or until `signal`. A failure costs the client only its progress. */
  return async (
    created: CreatedRun,
    onProgress: OnProgress,
    exchange: Exchange,
    signal: AbortSignal,
  ): Promise<void> => {
    const reader = readCreated(exchange.caller, created);
    const close = (): void => reader.close();
    signal.addEventListener("abort", close);
    if (signal.aborted) close();
    try {
      let progress = 0;
      for await (const { event, data } of eventsOf(reader, slicer)) {
        if (signal.aborted) return;
        const step = event === "steps" ? (data as unknown as Step) : undefined;
        if (step === undefined || !hasSucceeded(step)) continue;
        progress += 1;
        // A client that reads slowly misses progress only.
        if (exchange.isTaken()) await onProgress(progress, step.name);
      }
    } catch (error) {
      exchange.onFault(error, "the progress of a call could not be sent");
    } finally {
      signal.removeEventListener("abort", close);
    }
  };
};
