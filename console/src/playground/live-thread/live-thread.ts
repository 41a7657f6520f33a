import { useStream } from "@langchain/react";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useConnection } from "../../server/connection.tsx";
import type { ShownMessage } from "../messages/messages.ts";
import type { RunOptions } from "../composer/run-options.ts";
import { createStreamGate, reconnectDelayMs } from "../../server/stream-gate.ts";
import { useForeignRuns } from "./foreign-runs.ts";
import type { Input } from "../composer/input.ts";
import { rememberQueued, takeBackQueued, type HeldInput } from "../composer/held-messages.ts";
import { whenHydrated } from "./hydrated.ts";
import { useKeptText } from "./kept-text.ts";
import { useIsVisible } from "../../server/use-is-visible.ts";
import { useMissedEnd } from "./missed-end.ts";
import { clientOfStream, type ReadState, type Values } from "./stream-client.ts";
import { renewThread, type ThreadRecord } from "../threads/thread-record.ts";
import { startRun, stopRuns, waitForHead } from "./runs.ts";
import { createTurns, type Turns } from "../messages/turns.ts";
import { useMissingState } from "./missing-state.ts";

export type LiveStream = ReturnType<typeof useStream<Values>>;

export interface LiveThread {
  stream: LiveStream;
  messages: readonly ShownMessage[];
  isRunning: boolean;
  isReading: boolean;
  error: unknown;
  /** Queues the run behind a running one. Null continues with the next nodes. */
  send(input: Input | null): Promise<void>;
  /** `shown`: the messages until the run has started. */
  fork(input: Input | null, checkpointId: string, shown: readonly ShownMessage[]): Promise<void>;
  /** By interrupt id. */
  answer(responses: Record<string, unknown>): Promise<void>;
  /** Keeps the text on the screen. @returns the queued inputs that did not start */
  stop(): Promise<HeldInput[]>;
  /** Ids of kept answers. */
  stopped: ReadonlySet<string>;
  /** Runs a failed run again, or reads again. Sends nothing twice. */
  retry(): void;
  /** Drops messages of other branches, which a stream replays and the hook keeps. */
  reload(): void;
}

const NO_MESSAGES: readonly ShownMessage[] = [];
const NO_IDS: ReadonlySet<string> = new Set();

/**
 * Joins the running run of any client. Unmounting stops no run.
 * @param options for runs that this page starts
 */
export const useLiveThread = (
  assistantId: string,
  threadId: string,
  record: ThreadRecord | null | undefined,
  options: RunOptions,
): LiveThread => {
  const optionsNow = useRef(options);
  optionsNow.current = options;
  const connection = useConnection();
  const queries = useQueryClient();
  const [generation, setGeneration] = useState(0);
  const [client, gate, turns, read] = useMemo(
    () => {
      const made = createTurns();
      const state: ReadState = { hasMessages: false };
      const of = clientOfStream(connection, () => optionsNow.current, made, state);
      return [of, createStreamGate(), made, state] as const;
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- Each generation needs new objects.
    [connection, generation],
  );
  const stream = useStream<Values>({
    client: client as never,
    assistantId,
    threadId,
    fetch: gate.fetch,
    reconnectDelayMs,
  });
  const { isLoading, isThreadLoading } = stream;
  const [starting, setStarting] = useState<readonly ShownMessage[]>();
  const [fault, setFault] = useState<unknown>();

  const reload = useCallback(() => setGeneration((count) => count + 1), [setGeneration]);
  /** While this page sends, a new state is its own. */
  const isSending = useRef(false);
  useMissedEnd(record, isLoading, gate, reload);
  useMissingState(isLoading, turns, reload);

  /** Shown until the new stream has read the stored state. */
  const kept = useRef<readonly ShownMessage[]>(NO_MESSAGES);
  const [otherBranches, setOtherBranches] = useState<ReadonlySet<string>>(NO_IDS);
  const streamed = useStreamedMessages(stream, turns);
  const messages = useMemo(
    () =>
      otherBranches.size === 0
        ? streamed
        : streamed.filter(({ id }) => id === undefined || !otherBranches.has(id)),
    [streamed, otherBranches],
  );
  const isAwaited = kept.current === NO_MESSAGES && streamed.length === 0 && read.hasMessages;
  // The hook ends its loading state a moment before it has the values.
  const isBlank =
    isThreadLoading || isAwaited || (streamed.length === 0 && Object.keys(stream.values ?? {}).length === 0);
  if (!isBlank) kept.current = messages;
  useForeignRuns(record, stream, { gate, isReading: isThreadLoading || isAwaited, isSending, reload });
  const seenIds = useRef(new Set<string>());
  for (const { id } of streamed) if (id !== undefined) seenIds.current.add(id);

  const all = starting ?? (isBlank ? kept.current : messages);
  const { shown: shownMessages, stopped, keep, drop } = useKeptText(all);

  const startedIn = useRef(-1);
  const current = useRef({ stream, gate, all });
  current.current = { stream, gate, all };
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !isLoading) void renewThread(queries, threadId);
    wasRunning.current = isLoading;
  }, [isLoading, queries, threadId]);

  const shownGeneration = useRef(generation);
  shownGeneration.current = generation;
  // The hook takes next nodes for a running run, even after the run failed or timed out.
  const isIdle = startedIn.current < generation && record != null && record.status !== "busy";
  const isRunning = (isLoading && !isIdle) || starting !== undefined;
  const isVisible = useIsVisible();
  const isNeeded = isVisible && (isRunning || record?.status === "busy");
  useEffect(() => gate.setWanted(isNeeded), [gate, isNeeded]);
  useEffect(() => () => gate.close(), [gate]);
  const actions = useMemo(() => {
    const runAction = async <Result>(action: () => Promise<Result>): Promise<Result> => {
      setFault(undefined);
      current.current.gate.setWanted(true);
      isSending.current = true;
      try {
        return await action();
      } catch (error) {
        setFault(error);
        throw error;
      } finally {
        isSending.current = false;
        await renewThread(queries, threadId);
      }
    };
    /** Resolves when the server accepts the run. After an error the hook must drop the message. */
    const submit = async (input: Input | null): Promise<void> => {
      const before = kept.current;
      const { stream: submitting, gate: submittingGate } = current.current;
      try {
        await Promise.race([submittingGate.nextCommand(), submitting.submit(input)]);
      } catch (error) {
        kept.current = before;
        reload();
        throw error;
      }
    };
    return {
      send: (input: Input | null) =>
        runAction(async () => {
          await whenHydrated(() => current.current.stream);
          startedIn.current = shownGeneration.current;
          // The run continues the stopped one, and answers anew.
          if (input === null) drop();
          if (!current.current.stream.isLoading) return submit(input);
          const runId = await startRun(connection, {
            ...{ assistantId, threadId, input, options: optionsNow.current },
            multitaskStrategy: "enqueue",
          });
          rememberQueued(threadId, runId);
        }),
      fork: (input: Input | null, checkpointId: string, shown: readonly ShownMessage[]) =>
        runAction(async () => {
          drop();
          setStarting(shown);
          const shownIds = new Set(shown.map(({ id }) => id));
          setOtherBranches(new Set([...seenIds.current].filter((id) => !shownIds.has(id))));
          try {
            // The hook would keep the messages of the other branch.
            const runId = await startRun(connection, {
              ...{ assistantId, threadId, input, checkpointId, options: optionsNow.current },
            });
            await waitForHead(connection, threadId, runId);
            startedIn.current = shownGeneration.current + 1;
            reload();
          } catch (error) {
            setStarting(undefined);
            throw error;
          }
        }),
      answer: (responses: Record<string, unknown>) =>
        runAction(async () => {
          await whenHydrated(() => current.current.stream);
          startedIn.current = shownGeneration.current;
          await current.current.stream.respondAll(responses);
        }),
      stop: () =>
        runAction(async () => {
          const before = current.current.all;
          const held = await takeBackQueued(connection, threadId);
          await stopRuns(connection, threadId);
          keep(before, current.current.all);
          await current.current.stream.stop({ cancel: false });
          // What the server has stored of the run.
          reload();
          return held;
        }),
    };
  }, [assistantId, connection, drop, keep, queries, reload, threadId]);

  const loadedGeneration = useRef(generation);
  useEffect(() => {
    if (isThreadLoading || loadedGeneration.current === generation) return;
    loadedGeneration.current = generation;
    setStarting(undefined);
  }, [generation, isThreadLoading]);

  return {
    ...actions,
    stream,
    retry: () => {
      setFault(undefined);
      if (record?.status === "error") void actions.send(null).catch(() => undefined);
      else reload();
    },
    reload,
    messages: shownMessages,
    stopped,
    isRunning,
    isReading: isAwaited || (isThreadLoading && kept.current === NO_MESSAGES),
    error: fault ?? (isLoading && !isIdle ? undefined : (stream.error ?? errorOf(record))),
  };
};

/** Without messages of failed attempts, which the hook keeps and the stream replays. */
const useStreamedMessages = ({ messages }: LiveStream, turns: Turns): readonly ShownMessage[] => {
  const version = useSyncExternalStore(turns.subscribe, () => turns.version);
  return useMemo(() => {
    const streamed = messages as readonly ShownMessage[];
    const isKept = ({ id }: ShownMessage): boolean => id === undefined || !turns.isDiscarded(id);
    return streamed.every(isKept) ? streamed : streamed.filter(isKept);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `version` stands for the state of `turns`.
  }, [messages, turns, version]);
};

const errorOf = (record: ThreadRecord | null | undefined): unknown => {
  if (record?.status !== "error") return undefined;
  const { error, message } = (record.error ?? {}) as { error?: unknown; message?: unknown };
  const words = [error, message].filter((word) => typeof word === "string" && word !== "");
  return new Error(words.length > 0 ? words.join(": ") : "The last run failed.");
};
