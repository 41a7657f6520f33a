import { useCallback } from "react";
import { useSearch } from "wouter";
import { useNavigate } from "../../parts/use-navigate.ts";

/** In the address, so links and a reload lead to the same checkpoint. */
export interface CheckpointLocation {
  /** Undefined: the newest checkpoint. */
  checkpointId: string | undefined;
  showCheckpoint(checkpointId: string | undefined): void;
}

export const useHistoryLocation = (threadId: string): CheckpointLocation => {
  const navigate = useNavigate();
  const search = useSearch();
  const showCheckpoint = useCallback(
    (checkpointId: string | undefined): void => {
      const parts = new URLSearchParams(location.hash.split("?")[1] ?? "");
      if ((parts.get("checkpoint") ?? undefined) === checkpointId) return;
      if (checkpointId === undefined) parts.delete("checkpoint");
      else parts.set("checkpoint", checkpointId);
      const text = parts.toString();
      navigate(`/threads/${threadId}${text === "" ? "" : `?${text}`}`, { replace: true });
    },
    [navigate, threadId],
  );
  return { checkpointId: new URLSearchParams(search).get("checkpoint") ?? undefined, showCheckpoint };
};
