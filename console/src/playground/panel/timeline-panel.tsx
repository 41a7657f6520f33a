import { useQuery } from "@tanstack/react-query";
import { Activity } from "lucide-react";
import { Link } from "wouter";
import { EmptyState } from "../../design/empty-state.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";
import { TraceView } from "../../parts/timeline/trace-view.tsx";
import { useTrace } from "../../parts/timeline/use-trace.ts";
import { useConnection } from "../../server/connection.tsx";
import { refetchEvery } from "../../server/refetch.ts";

const POLL_MS = 2_000;

/** The timeline of the newest run of a thread. */
export default function TimelinePanel({
  threadId,
  revision,
}: {
  threadId: string;
  /** Changes when another run may have started. */
  revision: string;
}) {
  const { request } = useConnection();
  const newest = useQuery({
    queryKey: ["threads", threadId, "newest-run", revision],
    queryFn: async () => {
      const [run] = await request<{ run_id: string }[]>(
        "GET",
        `/threads/${threadId}/runs?limit=1&select=run_id`,
      );
      return run?.run_id ?? null;
    },
    placeholderData: (before) => before,
    refetchInterval: refetchEvery(revision.startsWith("busy") ? POLL_MS : false),
  });
  const runId = newest.data ?? undefined;
  const trace = useTrace(runId === undefined ? undefined : threadId, runId ?? "");
  if (newest.data === null)
    return (
      <EmptyState icon={Activity} title="No run yet">
        The nodes, models and tools of the newest run appear here on a time axis.
      </EmptyState>
    );
  return (
    <div className="stack">
      <ErrorNotice error={newest.error ?? trace.error} onRetry={() => void newest.refetch()} />
      {trace.data === undefined ? (
        newest.error === null && trace.error === null && <Skeleton lines={5} />
      ) : (
        <>
          <p className="row">
            <Link href={`/runs/${trace.data.run_id}`}>Open the newest run</Link>
          </p>
          <TraceView key={runId} trace={trace.data} isNarrow />
        </>
      )}
    </div>
  );
}
