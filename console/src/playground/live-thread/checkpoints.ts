import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { useConnection, type Connection } from "../../server/connection.tsx";
import { treeOf, type Checkpoint, type CheckpointTree } from "../messages/checkpoint-tree.ts";
import type { ShownMessage } from "../messages/messages.ts";

/** A checkpoint without values has half a kilobyte. */
const PAGE = 500;
/** A run has only a few checkpoints. */
const NEW_PAGE = 50;
/** Branches of older checkpoints are not shown. */
const CHECKPOINTS_AT_MOST = 3_000;

interface Reference {
  checkpoint_id?: string | null;
}

interface HistoryEntry {
  checkpoint: Reference | null;
  parent_checkpoint: Reference | null;
  metadata: { source?: string; run_id?: string } | null;
  next: string[] | null;
}

interface Known {
  checkpoints: readonly Checkpoint[];
  isWhole: boolean;
  tree: CheckpointTree;
}

const keyOf = (threadId: string) => ["threads", "checkpoints", threadId];

const readCheckpoints = async (
  { request }: Connection,
  threadId: string,
  known: Known | undefined,
): Promise<Known> => {
  const found = new Map<string, Checkpoint>();
  const old = new Map(known?.checkpoints.map((checkpoint) => [checkpoint.id, checkpoint]));
  let before: string | undefined;
  let isWhole = false;
  let limit = known === undefined ? PAGE : NEW_PAGE;
  while (found.size < CHECKPOINTS_AT_MOST) {
    const page = await request<HistoryEntry[]>("POST", `/threads/${threadId}/history`, {
      limit,
      select: ["checkpoint", "parent_checkpoint", "metadata", "next"],
      ...(before !== undefined && { before }),
    });
    for (const { checkpoint, parent_checkpoint, metadata, next } of page) {
      const id = checkpoint?.checkpoint_id;
      if (id == null) continue;
      found.set(id, {
        id,
        parent: parent_checkpoint?.checkpoint_id ?? undefined,
        source: metadata?.source ?? "loop",
        next: next ?? [],
        runId: metadata?.run_id,
      });
    }
    before = page.at(-1)?.checkpoint?.checkpoint_id ?? undefined;
    isWhole = page.length < limit;
    limit = PAGE;
    // The rest is known.
    if (isWhole || before === undefined) break;
    if (old.has(before)) {
      for (const [id, checkpoint] of old) if (!found.has(id)) found.set(id, checkpoint);
      isWhole = known?.isWhole ?? false;
      break;
    }
  }
  const checkpoints = [...found.values()];
  return { checkpoints, isWhole, tree: treeOf(checkpoints, isWhole) };
};

const EMPTY = treeOf([], true);

export const useCheckpoints = (
  threadId: string,
  revision: string,
): { tree: CheckpointTree; isNewest: boolean; readNewest(): Promise<CheckpointTree> } => {
  const connection = useConnection();
  const queries = useQueryClient();
  const { data, isFetchedAfterMount, refetch } = useQuery({
    queryKey: keyOf(threadId),
    queryFn: () => readCheckpoints(connection, threadId, queries.getQueryData<Known>(keyOf(threadId))),
    staleTime: Infinity,
    refetchOnMount: "always",
    structuralSharing: false,
  });
  const [readAt, setReadAt] = useState(revision);
  useEffect(() => {
    if (readAt === revision) return;
    let isOutdated = false;
    void refetch().then(() => {
      if (!isOutdated) setReadAt(revision);
    });
    return () => void (isOutdated = true);
  }, [readAt, refetch, revision]);
  const readNewest = useCallback(
    async () => (await refetch({ throwOnError: true })).data?.tree ?? EMPTY,
    [refetch],
  );
  return { tree: data?.tree ?? EMPTY, isNewest: isFetchedAfterMount && readAt === revision, readNewest };
};

interface StateOfMessages {
  values?: { messages?: ShownMessage[] } | null;
}

/** They never change. */
export const messageIdsAt = (connection: Connection, threadId: string, checkpointId: string) => ({
  queryKey: ["threads", "messages-at", threadId, checkpointId],
  staleTime: Infinity,
  queryFn: async (): Promise<ReadonlySet<string>> => {
    const state = await connection.request<StateOfMessages>(
      "GET",
      `/threads/${threadId}/state/${checkpointId}?select=values.messages`,
    );
    const messages = Array.isArray(state.values?.messages) ? state.values.messages : [];
    return new Set(messages.flatMap(({ id }) => (typeof id === "string" ? [id] : [])));
  },
  structuralSharing: false,
});

/**
 * The last checkpoint without the message. A binary search from the end reads few states, because users
 * mostly change new messages.
 * @param path to a checkpoint that contains the message
 * @throws Error if no checkpoint is before the message
 */
export const checkpointBefore = async (
  queries: QueryClient,
  connection: Connection,
  threadId: string,
  path: readonly Checkpoint[],
  messageId: string,
): Promise<string> => {
  const has = async (index: number): Promise<boolean> => {
    const id = path[index]?.id;
    if (id === undefined) return false;
    return (await queries.fetchQuery(messageIdsAt(connection, threadId, id))).has(messageId);
  };
  let first = path.length - 1;
  if (!(await has(first))) throw new Error("This message is not stored yet.");
  let hasNot = first - 1;
  for (let step = 2; hasNot >= 0 && (await has(hasNot)); step *= 2) {
    first = hasNot;
    hasNot -= step;
  }
  hasNot = Math.max(hasNot, -1);
  while (first - hasNot > 1) {
    const middle = Math.floor((first + hasNot) / 2);
    if (await has(middle)) first = middle;
    else hasNot = middle;
  }
  const before = path[hasNot]?.id;
  if (before === undefined) throw new Error("No checkpoint is stored before this message.");
  return before;
};
