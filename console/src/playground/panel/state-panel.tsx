import { useQuery } from "@tanstack/react-query";
import { Skeleton } from "../../design/skeleton.tsx";
import { JsonView } from "../../parts/json.tsx";
import { Empty, ErrorNotice } from "../../parts/notice.tsx";
import { CopyAs } from "../../parts/request-snippets/copy-as.tsx";
import { useConnection } from "../../server/connection.tsx";
import { refetchEvery } from "../../server/refetch.ts";

const POLL_MS = 2_000;

interface StoredState {
  values?: unknown;
  next?: string[] | null;
}

export const StatePanel = ({
  threadId,
  revision,
}: {
  threadId: string;
  /** Changes when the state may have changed. */
  revision: string;
}) => {
  const { client } = useConnection();
  const state = useQuery({
    queryKey: ["threads", "state", threadId, revision],
    queryFn: async () => (await client.threads.getState(threadId)) as StoredState,
    placeholderData: (before) => before,
    // A state may have megabytes, and a run stores many.
    gcTime: 0,
    refetchInterval: refetchEvery(revision.startsWith("busy") ? POLL_MS : false),
  });
  const { values, next } = state.data ?? {};
  return (
    <div className="stack">
      <ErrorNotice error={state.error} onRetry={() => void state.refetch()} />
      {next != null && next.length > 0 && <p className="faint">Next: {next.join(", ")}</p>}
      {state.isPending && state.error === null ? (
        <Skeleton lines={4} />
      ) : values == null ? (
        state.error === null && <Empty>Nothing is stored yet.</Empty>
      ) : (
        <JsonView value={values} />
      )}
      <div className="row">
        <CopyAs request={() => ({ method: "GET", path: `/threads/${threadId}/state` })} />
      </div>
    </div>
  );
};
