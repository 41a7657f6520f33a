import { useStream } from "@langchain/react";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useConnection } from "../server/connection.tsx";
import type { ShownMessage } from "./messages.ts";
import type { RunOptions } from "./run-options.ts";
import { createStreamGate, reconnectDelayMs, type StreamGate } from "../server/stream-gate.ts";
import { whenHydrated } from "./hydrated.ts";
import { useIsVisible } from "../server/use-is-visible.ts";
import { useMissedEnd } from "./missed-end.ts";
import { clientOfStream, type Values } from "./stream-client.ts";
import { renewThread, type ThreadRecord } from "./thread-record.ts";
import { startRun, stopRuns, waitForHead } from "./runs.ts";
import { createTurns, type Turns } from "./turns.ts";
import { useMissingState } from "./missing-state.ts";

export type LiveStream = ReturnType<typeof useStream<Values>>;

/** What goes into a run. */
export type Input = Record<string, unknown>;

export interface LiveThread {
  /** For hooks that read more of it. */
  stream: LiveStream;
  messages: readonly ShownMessage[];
  isRunning: boolean;
  /** What is stored is being read for the first time. */
  isReading: boolean;
  error: unknown;
  /** Starts a run; one that waits if another is going on. Null goes on where the thread stands. */
  send(input: Input | null): Promise<void>;
  /** Starts a run at an earlier checkpoint; what is shown until it has begun. */
  fork(input: Input | null, checkpointId: string, shown: readonly ShownMessage[]): Promise<void>;
  /** Answers what the thread waits for, by ids of interrupts. */
  answer(responses: Record<string, unknown>): Promise<void>;
  stop(): Promise<void>;
  /** After a fault: runs once more what failed, or reads once more what could not be read. Nothing is sent twice. */
  retry(): void;
  /** Reads what is stored once more: a stream replays what other branches have before, too, and the hook keeps that. */
  reload(): void;
}

const NO_MESSAGES: readonly ShownMessage[] = [];
const NO_IDS: ReadonlySet<string> = new Set();

/**
 * A thread as it goes on: joined where a run is going on, whoever started it. Leaving it stops nothing.
 * @param record what the server before of the thread last
 * @param options of the runs that are started from shownIds
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
  const [client, gate, turns] = useMemo(
    () => {
      const made = createTurns();
      return [clientOfStream(connection, () => optionsNow.current, made), createStreamGate(), made] as const;
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- A new one for each generation is the point.
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
  /** Something is being sent from shownIds, so what is read now is not somebody else's doing. */
  const isSending = useRef(false);
  useForeignRuns(record, stream, { gate, isSending, reload });
  useMissedEnd(record, isLoading, gate, reload);
  useMissingState(isLoading, turns, reload);

  /** Of the stream before this one, until this one has read what is stored. */
  const kept = useRef<readonly ShownMessage[]>(NO_MESSAGES);
  /** Of other branches than the one that was begun shownIds. */
  const [otherBranches, setOtherBranches] = useState<ReadonlySet<string>>(NO_IDS);
  const streamed = useStreamedMessages(stream, turns);
  const messages = useMemo(
    () =>
      otherBranches.size === 0
        ? streamed
        : streamed.filter(({ id }) => id === undefined || !otherBranches.has(id)),
    [streamed, otherBranches],
  );
  // The hook calls a thread read a revision before it has what was read.
  const isBlank = isThreadLoading || (streamed.length === 0 && Object.keys(stream.values ?? {}).length === 0);
  if (!isBlank) kept.current = messages;
  const seenIds = useRef(new Set<string>());
  for (const { id } of streamed) if (id !== undefined) seenIds.current.add(id);

  /** The newest generation in which something was begun from shownIds. */
  const startedIn = useRef(-1);
  const current = useRef({ stream, gate });
  current.current = { stream, gate };
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !isLoading) void renewThread(queries, threadId);
    wasRunning.current = isLoading;
  }, [isLoading, queries, threadId]);

  const shownGeneration = useRef(generation);
  shownGeneration.current = generation;
  // The hook takes a step that is due for one that runs, also where its run has failed, timed out, or could not be stored.
  const isIdle = startedIn.current < generation && record != null && record.status !== "busy";
  const isRunning = (isLoading && !isIdle) || starting !== undefined;
  const isVisible = useIsVisible();
  const isNeeded = isVisible && (isRunning || record?.status === "busy");
  useEffect(() => gate.setWanted(isNeeded), [gate, isNeeded]);
  useEffect(() => () => gate.close(), [gate]);
  const actions = useMemo(() => {
    const runAction = async (action: () => Promise<void>): Promise<void> => {
      setFault(undefined);
      current.current.gate.setWanted(true);
      isSending.current = true;
      try {
        await action();
      } catch (error) {
        setFault(error);
        throw error;
      } finally {
        isSending.current = false;
        await renewThread(queries, threadId);
      }
    };
    /** Resolves as soon as the run has begun. What the server refuses is not kept by the hook, as if it had been before. */
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
          if (!current.current.stream.isLoading) await submit(input);
          else
            await startRun(connection, {
              ...{ assistantId, threadId, input, options: optionsNow.current },
              multitaskStrategy: "enqueue",
            });
        }),
      fork: (input: Input | null, checkpointId: string, shown: readonly ShownMessage[]) =>
        runAction(async () => {
          setStarting(shown);
          const shownIds = new Set(shown.map(({ id }) => id));
          setOtherBranches(new Set([...seenIds.current].filter((id) => !shownIds.has(id))));
          try {
            // Not by the hook: what it shows would keep the messages of the other branch, whose steps are later ones.
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
          await stopRuns(connection, threadId);
          await current.current.stream.stop({ cancel: false });
        }),
    };
  }, [assistantId, connection, queries, reload, threadId]);

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
    messages: starting ?? (isBlank ? kept.current : messages),
    isRunning,
    isReading: isThreadLoading && kept.current === NO_MESSAGES,
    error: fault ?? (isLoading && !isIdle ? undefined : (stream.error ?? errorOf(record))),
  };
};

/**
 * What the hook shows, but for what an runAction has before that came to nothing: the hook keeps it beside what the next runAction says, and a
 * stream tells it again with each run after it, as long as the server keeps it.
 */
const useStreamedMessages = ({ messages }: LiveStream, turns: Turns): readonly ShownMessage[] => {
  const version = useSyncExternalStore(turns.subscribe, () => turns.version);
  return useMemo(() => {
    const streamed = messages as readonly ShownMessage[];
    const isKept = ({ id }: ShownMessage): boolean => id === undefined || !turns.isDiscarded(id);
    return streamed.every(isKept) ? streamed : streamed.filter(isKept);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- The version stands for what is left over.
  }, [messages, turns, version]);
};

/** Why the last run failed, as the server keeps it. */
const errorOf = (record: ThreadRecord | null | undefined): unknown => {
  if (record?.status !== "error") return undefined;
  const { error, message } = (record.error ?? {}) as { error?: unknown; message?: unknown };
  const words = [error, message].filter((word) => typeof word === "string" && word !== "");
  return new Error(words.length > 0 ? words.join(": ") : "The last run failed.");
};

interface StreamStatus {
  isLoading: boolean;
  isThreadLoading: boolean;
  messages: readonly unknown[];
}

/** A run that goes on may have stored nothing yet, and is not joined then. It is tried again after this time, after twice of it, and so on. */
const REJOIN_MS = 4_000;

interface ForeignRunOptions {
  gate: StreamGate;
  isSending: { readonly current: boolean };
  reload(): void;
}

/**
 * No stream is open to a thread that rests, so runs that others start are seen by asking: then what is stored is read anew, and
 * the run is joined.
 */
const useForeignRuns = (
  record: ThreadRecord | null | undefined,
  { isLoading, isThreadLoading, messages }: StreamStatus,
  { gate, isSending, reload }: ForeignRunOptions,
): void => {
  const isEmpty = messages.length === 0;
  const reloadedFor = useRef<string>(undefined);
  const seen = useRef<string>(undefined);
  const tries = useRef(0);
  const hasJoined = useRef(false);
  useEffect(() => {
    hasJoined.current = false;
  }, [gate]);
  if (isLoading) hasJoined.current = true;
  const isMissed = record?.status === "busy" && !isLoading && !isThreadLoading;
  useEffect(() => {
    if (isLoading) tries.current = 0;
    if (!isMissed) return;
    const timer = setTimeout(
      () => {
        tries.current += 1;
        reload();
      },
      REJOIN_MS * (tries.current + 1),
    );
    return () => clearTimeout(timer);
  }, [gate, isLoading, isMissed, reload]);
  useEffect(() => {
    if (record == null || isThreadLoading) return;
    const now = `${record.status} ${record.state_updated_at ?? record.updated_at}`;
    const hasChanged = seen.current !== undefined && seen.current !== now;
    seen.current = now;
    // Of a run that ended while nobody looked the stream tells no more.
    if (isSending.current || (isLoading && (gate.isOpen || record.status === "busy"))) return;
    // One that was streamed of messages which it takes for none keeps no others either; what is read has them all.
    const hasNoMessages =
      isEmpty && record.status !== "busy" && record.state_updated_at != null && reloadedFor.current !== now;
    if (hasNoMessages) reloadedFor.current = now;
    if (hasNoMessages || (hasChanged && !(hasJoined.current && gate.isOpen))) reload();
  }, [record, isLoading, isThreadLoading, isEmpty, gate, isSending, reload]);
};
