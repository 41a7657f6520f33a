import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Interrupt, ThreadTask } from "@langchain/langgraph-sdk";
import { useConnection, type Connection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

export interface CheckpointRef {
  checkpoint_id: string;
  checkpoint_ns: string;
}

/** Without values; `tasks` only if requested. */
export interface StoredCheckpoint {
  checkpoint: CheckpointRef | null;
  parent_checkpoint: CheckpointRef | null;
  created_at: string | null;
  metadata: { step?: number; source?: string; run_id?: string } | null;
  next: string[];
  interrupts?: Interrupt[];
  tasks?: ThreadTask[];
}

const FIELDS = ["checkpoint", "parent_checkpoint", "created_at", "metadata", "next", "interrupts"];

export interface HistoryPage {
  threadId: string;
  /** Empty: the root graph. */
  namespace: string;
  /** 1 to 1,000. */
  limit: number;
  before?: string | undefined;
  withTasks?: boolean;
}

/**
 * Newest first, without values.
 * @throws ApiError
 */
export const readHistory = async (
  { request }: Pick<Connection, "request">,
  { threadId, namespace, limit, before, withTasks = false }: HistoryPage,
): Promise<StoredCheckpoint[]> => {
  const states = await request<StoredCheckpoint[]>(
    "POST",
    `/threads/${encodeURIComponent(threadId)}/history`,
    {
      limit,
      select: withTasks ? [...FIELDS, "tasks"] : FIELDS,
      checkpoint: { checkpoint_ns: namespace },
      ...(before === undefined ? {} : { before }),
    },
  );
  return states.filter(({ checkpoint }) => checkpoint !== null);
};

const idOf = ({ checkpoint }: StoredCheckpoint): string => checkpoint?.checkpoint_id ?? "";

const HISTORY_PAGE = 100;
/** Pages searched for the newest known checkpoint; beyond them the list starts over. */
const NEW_PAGES_AT_MOST = 10;

interface KnownHistory {
  states: StoredCheckpoint[];
  hasOlder: boolean;
}

/**
 * Reads new checkpoints and adds the known older ones.
 * @throws ApiError
 */
const readNewest = async (
  connection: Connection,
  source: { threadId: string; namespace: string },
  known: KnownHistory | undefined,
): Promise<KnownHistory> => {
  const newestKnown = known?.states[0];
  let states: StoredCheckpoint[] = [];
  for (let pages = 1; ; pages += 1) {
    const before = states.at(-1);
    const page = await readHistory(connection, {
      ...source,
      limit: HISTORY_PAGE,
      before: before && idOf(before),
    });
    states = [...states, ...page];
    const isWhole = page.length < HISTORY_PAGE;
    if (isWhole) return { states, hasOlder: false };
    if (known === undefined || newestKnown === undefined || pages === NEW_PAGES_AT_MOST)
      return { states, hasOlder: true };
    const oldest = idOf(page.at(-1) as StoredCheckpoint);
    // Ids rise with time, so a known checkpoint as new as this page is in the page or was deleted.
    if (oldest <= idOf(newestKnown))
      return {
        states: [...states, ...known.states.filter((state) => idOf(state) < oldest)],
        hasOlder: known.hasOlder,
      };
  }
};

/** Newest first. While `isChanging`, the newest are read every second. */
export const useHistory = (threadId: string, namespace: string, isChanging: boolean) => {
  const connection = useConnection();
  const queries = useQueryClient();
  const key = ["threads", threadId, "history", namespace];
  const history = useQuery({
    queryKey: key,
    queryFn: () => readNewest(connection, { threadId, namespace }, queries.getQueryData<KnownHistory>(key)),
    refetchInterval: refetchEvery(isChanging ? 1_000 : false),
  });
  const older = useMutation({
    mutationFn: async () => {
      const before = queries.getQueryData<KnownHistory>(key)?.states.at(-1);
      const page = await readHistory(connection, {
        threadId,
        namespace,
        limit: HISTORY_PAGE,
        before: before && idOf(before),
      });
      // A refetch in flight would overwrite this page.
      await queries.cancelQueries({ queryKey: key });
      queries.setQueryData<KnownHistory>(key, (known) => ({
        states: [...(known?.states ?? []), ...page],
        hasOlder: page.length === HISTORY_PAGE,
      }));
    },
  });
  return {
    states: history.data?.states,
    hasOlder: history.data?.hasOlder ?? false,
    error: history.error ?? older.error,
    retry: () => void history.refetch(),
    loadOlder: () => older.mutate(),
    isLoadingOlder: older.isPending,
  };
};
