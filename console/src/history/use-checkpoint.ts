import { useQuery } from "@tanstack/react-query";
import type { CheckpointRef } from "../parts/checkpoints.ts";
import { useConnection } from "../server/connection.tsx";

/** Refetched only after changes of the thread. */
export const useCheckpoint = (threadId: string, checkpointRef: CheckpointRef | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["threads", threadId, "checkpoint", checkpointRef?.checkpoint_ns, checkpointRef?.checkpoint_id],
    queryFn: () =>
      client.threads.getState<Record<string, unknown>>(threadId, {
        thread_id: threadId,
        checkpoint_ns: checkpointRef?.checkpoint_ns ?? "",
        checkpoint_id: checkpointRef?.checkpoint_id,
        checkpoint_map: null,
      }),
    enabled: checkpointRef !== undefined,
    staleTime: 60_000,
    // A state may have 30 MB.
    gcTime: 0,
  });
};
