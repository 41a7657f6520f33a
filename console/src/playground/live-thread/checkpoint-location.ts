import { useCallback, useEffect, useRef } from "react";
import { useLocation, useSearch } from "wouter";

/** In the address, so links and a reload lead to the same checkpoint. */
export interface CheckpointLocation {
  /** Undefined: the newest checkpoint. */
  checkpointId: string | undefined;
  showCheckpoint(checkpointId: string | undefined): void;
}

export const useHistoryLocation = (threadId: string): CheckpointLocation => {
  const [, navigate] = useLocation();
  const search = useSearch();
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => void (isMounted.current = false);
  }, []);
  const showCheckpoint = useCallback(
    (checkpointId: string | undefined): void => {
      // A run may start after the user has left the page.
      if (!isMounted.current) return;
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
