import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useConnection } from "../../server/connection.tsx";
import {
  forksOnPath,
  headOf,
  newestBelow,
  pathTo,
  type Checkpoint,
  type CheckpointTree,
  type Fork,
} from "../messages/checkpoint-tree.ts";
import { checkpointBefore, messageIdsAt, useCheckpoints } from "./checkpoints.ts";
import {
  hasWritten,
  subgraphsAt,
  subgraphsOnPath,
  type Subgraph,
  type SubgraphTask,
} from "../messages/subgraphs.ts";
import { NO_RUNS, runsOfAnswers } from "../messages/figures.ts";
import type { Input } from "../composer/input.ts";
import type { LiveThread } from "./live-thread.ts";
import type { Alternatives, MessageActions } from "../messages/message-actions.ts";
import { messagesIn, type ShownMessage, type ToolCall } from "../messages/messages.ts";
import { useHistoryLocation } from "./checkpoint-location.ts";
import type { ThreadRecord } from "../threads/thread-record.ts";

/** Each fork needs the messages of a state. */
const FORKS_AT_MOST = 40;

export interface Branches extends MessageActions {
  messages: readonly ShownMessage[];
  /** By the first message of each branch. */
  alternatives: ReadonlyMap<string, Alternatives>;
  /** Run ids by the ids of answers. */
  runOf: ReadonlyMap<string, string>;
  /** Undefined at the newest checkpoint. */
  elsewhere: "earlier" | "on another branch" | undefined;
  showNewest(): void;
  /** Empty while newer checkpoints are read: a run leaves its last checkpoint without next nodes. */
  next: readonly string[];
  continueRun(): Promise<void>;
  send(input: Input): Promise<void>;
  error: unknown;
}

interface StoredState {
  values?: { messages?: unknown } | null;
}

const NO_MESSAGES: readonly ShownMessage[] = [];
const NO_FORKS: ReadonlyMap<string, Fork> = new Map();

const withText = (content: unknown, text: string): unknown => {
  if (!Array.isArray(content)) return text;
  const others = (content as unknown[]).filter(
    (block) => typeof block !== "string" && (block as { type?: unknown } | null)?.type !== "text",
  );
  return others.length === 0 ? text : [{ type: "text", text }, ...others];
};

const messagesOf = (input: Input | null): ShownMessage[] => {
  const messages = input?.["messages"];
  return Array.isArray(messages) ? (messages as ShownMessage[]) : [];
};

export const useBranches = (
  threadId: string,
  live: LiveThread,
  record: ThreadRecord | null | undefined,
): Branches => {
  const connection = useConnection();
  const queries = useQueryClient();
  const { isRunning } = live;
  const { tree, isNewest, readNewest } = useCheckpoints(
    threadId,
    `${isRunning} ${record?.state_updated_at ?? ""} ${record?.status ?? ""}`,
  );
  const head = headOf(tree);
  const { checkpointId: chosen, showCheckpoint } = useHistoryLocation(threadId);
  const [fault, setFault] = useState<unknown>();
  const elsewhere = chosen === head?.id ? undefined : chosen;
  const shownId = elsewhere ?? head?.id;

  const stored = useQuery({
    queryKey: ["threads", "state-at", threadId, elsewhere],
    queryFn: () =>
      connection.request<StoredState>(
        "GET",
        `/threads/${threadId}/state/${encodeURIComponent(elsewhere ?? "")}`,
      ),
    enabled: elsewhere !== undefined,
    staleTime: Infinity,
    // A state may have 30 MB.
    gcTime: 0,
    structuralSharing: false,
  });
  const storedMessages = useMemo(
    () => stored.data && messagesIn(stored.data.values?.messages),
    [stored.data],
  );
  const messages =
    elsewhere === undefined || isRunning || storedMessages === undefined ? live.messages : storedMessages;

  const forks = useMemo(() => forksOnPath(tree, shownId).slice(-FORKS_AT_MOST), [tree, shownId]);
  const { reload } = live;
  const hasForks = forks.length > 0;
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !isRunning && hasForks) reload();
    wasRunning.current = isRunning;
  }, [isRunning, hasForks, reload]);
  const sharedIds = useQueries({
    queries: forks.flatMap(({ shared }) =>
      shared === undefined ? [] : [messageIdsAt(connection, threadId, shared)],
    ),
    combine: (answers) => answers.map(({ data }) => data),
  });
  const forkOf = useForks(forks, sharedIds, messages, isRunning);
  const alternatives = useMemo(
    () =>
      new Map<string, Alternatives>(
        [...forkOf].map(([id, { position, branches }]) => [id, { position, count: branches.length }]),
      ),
    [forkOf],
  );

  const runOf = useRuns(tree, shownId, messages, isRunning);

  const now = useRef({ tree, messages, forkOf, elsewhere, live, head });
  now.current = { tree, messages, forkOf, elsewhere, live, head };
  const isStarting = useRef(false);
  const actions = useMemo(() => {
    const branchAt = async (message: ShownMessage, input: Input | null): Promise<void> => {
      setFault(undefined);
      const { elsewhere: shownAt, messages: all, live: thread } = now.current;
      let checkpointId: string;
      try {
        // A run may have just ended.
        const from = await readNewest();
        checkpointId = await checkpointBefore(
          queries,
          connection,
          threadId,
          pathTo(from, shownAt ?? headOf(from)?.id),
          message.id ?? "",
        );
      } catch (error) {
        setFault(error);
        throw error;
      }
      const kept = all.slice(0, Math.max(0, all.indexOf(message)));
      showCheckpoint(undefined);
      await thread.fork(input, checkpointId, [...kept, ...messagesOf(input)]);
    };
    /**
     * Leads to the checkpoint whose tasks wrote the message.
     * @param messageId undefined: the tasks have not ended
     */
    const pathBefore = async (messageId: string | undefined): Promise<Checkpoint[]> => {
      const { tree: known, elsewhere: shownAt } = now.current;
      const from = known.byId.size === 0 ? await readNewest() : known;
      const path = pathTo(from, shownAt ?? headOf(from)?.id);
      if (messageId === undefined) return path;
      const before = await checkpointBefore(queries, connection, threadId, path, messageId);
      return path.slice(0, path.findIndex(({ id }) => id === before) + 1);
    };
    const subgraphsAtEnd = async (
      path: readonly Checkpoint[],
      isRelevant: (task: SubgraphTask) => boolean,
    ): Promise<Subgraph[]> => {
      const at = path.at(-1)?.id;
      return at === undefined ? [] : subgraphsAt(connection, threadId, at, isRelevant);
    };
    const branchOnce = async (message: ShownMessage, input: Input | null): Promise<void> => {
      if (isStarting.current) return;
      isStarting.current = true;
      try {
        await branchAt(message, input);
      } finally {
        isStarting.current = false;
      }
    };
    return {
      edit: (message: ShownMessage, text: string) =>
        branchOnce(message, { messages: [{ type: "human", content: withText(message.content, text) }] }),
      regenerate: (message: ShownMessage) => branchOnce(message, null),
      showAlternative: (message: ShownMessage, step: 1 | -1) => {
        const { tree: from, forkOf: byMessage, head: newest } = now.current;
        const fork = byMessage.get(message.id ?? "");
        const branch = fork?.branches[fork.position + step];
        if (branch === undefined) return;
        const end = newestBelow(from, branch);
        showCheckpoint(end === newest?.id ? undefined : end);
      },
      subgraphsOfCall: async ({ id }: ToolCall, result: ShownMessage | undefined) =>
        subgraphsAtEnd(
          await pathBefore(result?.id),
          (task) => result === undefined || hasWritten(task, "tool_call_id", id ?? ""),
        ),
      subgraphsOfMessage: async ({ id = "" }: ShownMessage) => {
        const path = await pathBefore(id);
        const own = await subgraphsAtEnd(path, (task) => hasWritten(task, "id", id));
        // A node may combine the results of subgraphs of earlier steps.
        return own.length > 0 ? own : subgraphsOnPath(connection, threadId, path);
      },
      showNewest: () => showCheckpoint(undefined),
      send: async (input: Input) => {
        const { elsewhere: shownAt, messages: all, live: thread } = now.current;
        showCheckpoint(undefined);
        if (shownAt === undefined) return thread.send(input);
        return thread.fork(input, shownAt, [...all, ...messagesOf(input)]);
      },
      continueRun: async () => {
        const { elsewhere: shownAt, messages: all, live: thread } = now.current;
        showCheckpoint(undefined);
        if (shownAt === undefined) return thread.send(null);
        return thread.fork(null, shownAt, all);
      },
    };
  }, [connection, showCheckpoint, queries, readNewest, threadId]);
  const isAncestor = useMemo(
    () => elsewhere !== undefined && pathTo(tree, head?.id).some(({ id }) => id === elsewhere),
    [tree, head, elsewhere],
  );

  return {
    ...actions,
    messages,
    alternatives,
    runOf,
    elsewhere:
      elsewhere === undefined || isRunning ? undefined : isAncestor ? "earlier" : "on another branch",
    next: (elsewhere !== undefined ? tree.byId.get(elsewhere) : isNewest ? head : undefined)?.next ?? [],
    error: fault ?? (elsewhere === undefined ? undefined : stored.error),
  };
};

/** By the first message that differs. Unchanged during a run. */
const useForks = (
  forks: readonly Fork[],
  sharedIds: readonly (ReadonlySet<string> | undefined)[],
  messages: readonly ShownMessage[],
  isRunning: boolean,
): ReadonlyMap<string, Fork> => {
  const last = useRef(NO_FORKS);
  const settled = isRunning ? NO_MESSAGES : messages;
  const found = useMemo(() => {
    const byMessage = new Map<string, Fork>();
    let nextShared = 0;
    for (const fork of forks) {
      const shared = fork.shared === undefined ? new Set<string>() : sharedIds[nextShared++];
      if (shared === undefined) continue;
      const first = settled.find(({ id }) => id !== undefined && !shared.has(id));
      if (first?.id !== undefined) byMessage.set(first.id, fork);
    }
    return byMessage.size === 0 ? NO_FORKS : byMessage;
  }, [forks, sharedIds, settled]);
  if (!isRunning) last.current = found;
  return last.current;
};

/** Unchanged during a run. */
const useRuns = (
  tree: CheckpointTree,
  shownId: string | undefined,
  messages: readonly ShownMessage[],
  isRunning: boolean,
): ReadonlyMap<string, string> => {
  const last = useRef(NO_RUNS);
  const settled = isRunning ? NO_MESSAGES : messages;
  const found = useMemo(() => runsOfAnswers(tree, shownId, settled), [tree, shownId, settled]);
  if (!isRunning) last.current = found;
  return last.current;
};
