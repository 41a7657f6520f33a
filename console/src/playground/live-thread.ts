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
import { useUntoldRun } from "./missing-state.ts";

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
  /** Reads what is stored once more: a stream replays what other branches have said, too, and the hook keeps that. */
  readAnew(): void;
}

const NO_MESSAGES: readonly ShownMessage[] = [];
const NO_IDS: ReadonlySet<string> = new Set();

/**
 * A thread as it goes on: joined where a run is going on, whoever started it. Leaving it stops nothing.
 * @param record what the server said of the thread last
 * @param options of the runs that are started from here
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

  const readAnew = useCallback(() => setGeneration((count) => count + 1), [setGeneration]);
  /** Something is being sent from here, so what is read now is not somebody else's doing. */
  const isSending = useRef(false);
  useForeignRuns(record, stream, { gate, isSending, readAnew });
  useMissedEnd(record, isLoading, gate, readAnew);
  useUntoldRun(isLoading, turns, readAnew);

  /** Of the stream before this one, until this one has read what is stored. */
  const kept = useRef<readonly ShownMessage[]>(NO_MESSAGES);
  /** Of other branches than the one that was begun here. */
  const [elsewhere, setElsewhere] = useState<ReadonlySet<string>>(NO_IDS);
  const told = useWithoutLeftovers(stream, turns);
  const streamed = useMemo(
    () => (elsewhere.size === 0 ? told : told.filter(({ id }) => id === undefined || !elsewhere.has(id))),
    [told, elsewhere],
  );
  // The hook calls a thread read a moment before it has what was read.
  const isBlank = isThreadLoading || (told.length === 0 && Object.keys(stream.values ?? {}).length === 0);
  if (!isBlank) kept.current = streamed;
  const everTold = useRef(new Set<string>());
  for (const { id } of told) if (id !== undefined) everTold.current.add(id);

  /** The newest generation in which something was begun from here. */
  const begunIn = useRef(-1);
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
  const isAtRest = begunIn.current < generation && record != null && record.status !== "busy";
  const isRunning = (isLoading && !isAtRest) || starting !== undefined;
  const isVisible = useIsVisible();
  const isWanted = isVisible && (isRunning || record?.status === "busy");
  useEffect(() => gate.setWanted(isWanted), [gate, isWanted]);
  useEffect(() => () => gate.close(), [gate]);
  const actions = useMemo(() => {
    const trying = async (action: () => Promise<void>): Promise<void> => {
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
    /** Resolves as soon as the run has begun. What the server refuses is not kept by the hook, as if it had been said. */
    const submitted = async (input: Input | null): Promise<void> => {
      const said = kept.current;
      const { stream: submitting, gate: passed } = current.current;
      try {
        await Promise.race([passed.nextCommand(), submitting.submit(input)]);
      } catch (error) {
        kept.current = said;
        readAnew();
        throw error;
      }
    };
    return {
      send: (input: Input | null) =>
        trying(async () => {
          await whenHydrated(() => current.current.stream);
          begunIn.current = shownGeneration.current;
          if (!current.current.stream.isLoading) await submitted(input);
          else
            await startRun(connection, {
              ...{ assistantId, threadId, input, options: optionsNow.current },
              multitaskStrategy: "enqueue",
            });
        }),
      fork: (input: Input | null, checkpointId: string, shown: readonly ShownMessage[]) =>
        trying(async () => {
          setStarting(shown);
          const here = new Set(shown.map(({ id }) => id));
          setElsewhere(new Set([...everTold.current].filter((id) => !here.has(id))));
          try {
            // Not by the hook: what it shows would keep the messages of the other branch, whose steps are later ones.
            const runId = await startRun(connection, {
              ...{ assistantId, threadId, input, checkpointId, options: optionsNow.current },
            });
            await waitForHead(connection, threadId, runId);
            begunIn.current = shownGeneration.current + 1;
            readAnew();
          } catch (error) {
            setStarting(undefined);
            throw error;
          }
        }),
      answer: (responses: Record<string, unknown>) =>
        trying(async () => {
          await whenHydrated(() => current.current.stream);
          begunIn.current = shownGeneration.current;
          await current.current.stream.respondAll(responses);
        }),
      stop: () =>
        trying(async () => {
          await stopRuns(connection, threadId);
          await current.current.stream.stop({ cancel: false });
        }),
    };
  }, [assistantId, connection, queries, readAnew, threadId]);

  const isFresh = useRef(generation);
  useEffect(() => {
    if (isThreadLoading || isFresh.current === generation) return;
    isFresh.current = generation;
    setStarting(undefined);
  }, [generation, isThreadLoading]);

  return {
    ...actions,
    stream,
    retry: () => {
      setFault(undefined);
      if (record?.status === "error") void actions.send(null).catch(() => undefined);
      else readAnew();
    },
    readAnew,
    messages: starting ?? (isBlank ? kept.current : streamed),
    isRunning,
    isReading: isThreadLoading && kept.current === NO_MESSAGES,
    error: fault ?? (isLoading && !isAtRest ? undefined : (stream.error ?? errorOf(record))),
  };
};

/**
 * What the hook shows, but for what an attempt has said that came to nothing: the hook keeps it beside what the next attempt says, and a
 * stream tells it again with each run after it, as long as the server keeps it.
 */
const useWithoutLeftovers = ({ messages }: LiveStream, turns: Turns): readonly ShownMessage[] => {
  const version = useSyncExternalStore(turns.subscribe, () => turns.version);
  return useMemo(() => {
    const told = messages as readonly ShownMessage[];
    const isKept = ({ id }: ShownMessage): boolean => id === undefined || !turns.isLeftOver(id);
    return told.every(isKept) ? told : told.filter(isKept);
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

interface StreamStanding {
  isLoading: boolean;
  isThreadLoading: boolean;
  messages: readonly unknown[];
}

/** A run that goes on may have stored nothing yet, and is not joined then. It is tried again after this time, after twice of it, and so on. */
const JOINED_WITHIN_MS = 4_000;

interface ForeignRuns {
  gate: StreamGate;
  isSending: { readonly current: boolean };
  readAnew(): void;
}

/**
 * No stream is open to a thread that rests, so runs that others start are seen by asking: then what is stored is read anew, and
 * the run is joined.
 */
const useForeignRuns = (
  record: ThreadRecord | null | undefined,
  { isLoading, isThreadLoading, messages }: StreamStanding,
  { gate, isSending, readAnew }: ForeignRuns,
): void => {
  const isEmpty = messages.length === 0;
  const readFor = useRef<string>(undefined);
  const seen = useRef<string>(undefined);
  const tries = useRef(0);
  const isAttached = useRef(false);
  useEffect(() => {
    isAttached.current = false;
  }, [gate]);
  if (isLoading) isAttached.current = true;
  const isMissed = record?.status === "busy" && !isLoading && !isThreadLoading;
  useEffect(() => {
    if (isLoading) tries.current = 0;
    if (!isMissed) return;
    const timer = setTimeout(
      () => {
        tries.current += 1;
        readAnew();
      },
      JOINED_WITHIN_MS * (tries.current + 1),
    );
    return () => clearTimeout(timer);
  }, [gate, isLoading, isMissed, readAnew]);
  useEffect(() => {
    if (record == null || isThreadLoading) return;
    const now = `${record.status} ${record.state_updated_at ?? record.updated_at}`;
    const hasChanged = seen.current !== undefined && seen.current !== now;
    seen.current = now;
    // Of a run that ended while nobody looked the stream tells no more.
    if (isSending.current || (isLoading && (gate.isOpen || record.status === "busy"))) return;
    // One that was told of messages which it takes for none keeps no others either; what is read has them all.
    const isMute =
      isEmpty && record.status !== "busy" && record.state_updated_at != null && readFor.current !== now;
    if (isMute) readFor.current = now;
    if (isMute || (hasChanged && !(isAttached.current && gate.isOpen))) readAnew();
  }, [record, isLoading, isThreadLoading, isEmpty, gate, isSending, readAnew]);
};
