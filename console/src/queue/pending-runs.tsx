import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Hourglass } from "lucide-react";
import { EmptyState } from "../design/empty-state.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { LISTED_FIELDS, type Run } from "../parts/run.ts";
import { RecordLink } from "../parts/record-link.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

const SHOWN_AT_MOST = 50;

export const PendingRuns = ({ pollMs, onCancel }: { pollMs: number; onCancel(run: Run): void }) => {
  const { search } = useConnection();
  const {
    data,
    error,
    isLoading,
    refetch,
    dataUpdatedAt: now,
  } = useQuery({
    queryKey: ["runs", "waiting"],
    queryFn: () =>
      search<Run>("/runs/search", {
        status: "pending",
        sort_order: "asc",
        limit: SHOWN_AT_MOST,
        select: LISTED_FIELDS,
      }),
    refetchInterval: refetchEvery(pollMs),
  });
  return (
    <section className="stack">
      <h2>Pending runs</h2>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isLoading && <Skeleton lines={3} label="Loading pending runs" />}
      {data?.items.length === 0 && (
        <EmptyState icon={Hourglass} title="No pending runs.">
          A run waits here for its thread, for its time, or for a free slot of a server.
        </EmptyState>
      )}
      {data !== undefined && data.items.length > 0 && (
        <Table label="Pending runs" columns={["Run", "Graph", "Thread", "Created", "Reason", "Cancel"]}>
          {data.items.map((run) => {
            const { run_id, thread_id, available_at, lost_attempts: lost = 0 } = run;
            const isForLater = available_at !== undefined && Date.parse(available_at) > now;
            return (
              <tr key={run_id}>
                <td>
                  <RecordLink id={run_id} href={`/runs/${run_id}`} />
                </td>
                <td>{run.graph_id !== undefined && truncate(run.graph_id)}</td>
                <td>
                  <RecordLink id={thread_id} href={`/threads/${thread_id}`} />
                </td>
                <td>
                  <Time iso={run.created_at} />
                </td>
                <td>
                  {isForLater ? (
                    <>
                      due <Time iso={available_at} />
                    </>
                  ) : lost > 0 ? (
                    `lost ${lost} attempts`
                  ) : (
                    "waits for its thread or a slot"
                  )}
                </td>
                <td>
                  <button
                    type="button"
                    className="plain danger small"
                    aria-label={`Cancel run ${run_id}`}
                    onClick={() => onCancel(run)}
                  >
                    Cancel
                  </button>
                </td>
              </tr>
            );
          })}
        </Table>
      )}
      {data?.hasMore === true && (
        <p>
          <Link href="/runs?status=pending">All pending runs</Link>
        </p>
      )}
    </section>
  );
};
