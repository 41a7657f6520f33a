import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { readHistory, type StoredCheckpoint } from "../checkpoints.ts";
import { useConnection, type Connection } from "../../server/connection.tsx";
import { refetchEvery } from "../../server/refetch.ts";
import { activityByNode, executionsIn, mergeExecutions, namespaceBelow, type Execution } from "./activity.ts";
import { useLiveTasks } from "./use-live-tasks.ts";

/** Checkpoints of the root graph in each step. */
const CHECKPOINTS_READ = 50;
const CHECKPOINTS_AT_MOST = 1_000;
const SUBGRAPHS_READ = 30;
const AT_ONCE = 4;
/** The stream omits tasks that began before the page opened. */
const POLL_MS = 3_000;

interface StoredExecutions {
  /** Whether the thread had a run when the executions were read. */
  isBusy: boolean;
  executions: Execution[];
  hasOlder: boolean;
}

type ReadNamespace = (namespace: string, mayChange: boolean) => Promise<StoredCheckpoint[]>;

/** Recursively, in subgraphs. */
const readBelow = async (
  above: readonly Execution[],
  subgraphs: ReadonlySet<string>,
  read: ReadNamespace,
  left: number,
): Promise<Execution[]> => {
  const calls = above.filter(({ node }) => subgraphs.has(node)).slice(0, left);
  const below: Execution[] = [];
  for (let first = 0; first < calls.length; first += AT_ONCE) {
    const some = calls.slice(first, first + AT_ONCE).map(async (call) => {
      const namespace = namespaceBelow(call);
      return executionsIn(await read(namespace, call.outcome !== "done"), namespace);
    });
    below.push(...(await Promise.all(some)).flat());
  }
  const remaining = left - calls.length;
  if (below.length === 0 || remaining <= 0) return below;
  return [...below, ...(await readBelow(below, subgraphs, read, remaining))];
};

const readExecutions = async (
  connection: Connection,
  queries: QueryClient,
  { threadId, limit, subgraphs }: { threadId: string; limit: number; subgraphs: ReadonlySet<string> },
): Promise<StoredExecutions> => {
  const read: ReadNamespace = (namespace, mayChange) =>
    queries.fetchQuery({
      queryKey: ["threads", threadId, "subgraph", namespace],
      queryFn: () =>
        readHistory(connection, { threadId, namespace, limit: CHECKPOINTS_READ, withTasks: true }),
      // The checkpoints of a finished subgraph do not change.
      staleTime: mayChange ? 0 : Infinity,
    });
  const [thread] = await connection.request<{ status: string }[]>("POST", "/threads/search", {
    ids: [threadId],
    select: ["status"],
    limit: 1,
  });
  const states = await readHistory(connection, { threadId, namespace: "", limit, withTasks: true });
  const root = executionsIn(states, "");
  const below = await readBelow(root, subgraphs, read, SUBGRAPHS_READ);
  return {
    isBusy: thread?.status === "busy",
    executions: [...root, ...below],
    hasOlder: states.length === limit && limit < CHECKPOINTS_AT_MOST,
  };
};

/**
 * Stored executions from checkpoints, running ones from the stream; newest first.
 * @param groups ids of the graph's subgraphs
 */
export const useExecutions = (
  threadId: string | undefined,
  assistantId: string | undefined,
  groups: readonly string[],
) => {
  const connection = useConnection();
  const queries = useQueryClient();
  const [range, setRange] = useState({ threadId, limit: CHECKPOINTS_READ });
  const limit = range.threadId === threadId ? range.limit : CHECKPOINTS_READ;
  const live = useLiveTasks(threadId, assistantId);
  const stored = useQuery({
    queryKey: ["threads", threadId, "executions", limit, groups],
    queryFn: () =>
      readExecutions(connection, queries, { threadId: threadId ?? "", limit, subgraphs: new Set(groups) }),
    enabled: threadId !== undefined,
    refetchInterval: (query) =>
      refetchEvery(live.isRunning === true || query.state.data?.isBusy === true ? POLL_MS : false)(query),
    placeholderData: (before, query) => (query?.queryKey[1] === threadId ? before : undefined),
  });
  const { changes, tasks } = live;
  const { refetch } = stored;
  useEffect(() => {
    if (changes > 0) void refetch();
  }, [changes, refetch]);
  // The server knows which runs go on, and the stream is the first to know that one has ended.
  const isRunning = stored.data?.isBusy === true && live.isRunning !== false;
  const executions = useMemo(
    () => mergeExecutions(stored.data?.executions ?? [], { tasks, isRunning }),
    [stored.data, tasks, isRunning],
  );
  const activity = useMemo(() => activityByNode(executions), [executions]);
  return {
    executions,
    activity,
    isLoading: stored.isLoading,
    isRunning,
    hasOlder: stored.data?.hasOlder ?? false,
    loadOlder: () => setRange({ threadId, limit: Math.min(limit + CHECKPOINTS_READ, CHECKPOINTS_AT_MOST) }),
    error: stored.error ?? live.error,
    retry: () => {
      live.retry();
      void refetch();
    },
  };
};
