import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { JsonView } from "../parts/json.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/queries.ts";

const POLL_MS = 2_000;

interface StoredState {
  values?: unknown;
  next?: string[] | null;
}

export const StatePanel = ({
  threadId,
  assistantId,
  revision,
}: {
  threadId: string;
  assistantId: string;
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
      <h2>State</h2>
      <p className="row">
        <Link href={`/threads/${threadId}/history`}>Time travel</Link>
        <Link href={`/graph/${assistantId}?thread=${threadId}`}>Graph</Link>
      </p>
      <ErrorNotice error={state.error} onRetry={() => void state.refetch()} />
      {next != null && next.length > 0 && <p className="faint">Next: {next.join(", ")}</p>}
      {values == null ? <Empty>Nothing is stored yet.</Empty> : <JsonView value={values} />}
    </div>
  );
};
