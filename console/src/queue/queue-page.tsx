import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { CancelDialog, type CancelAction } from "../parts/cancel-dialog.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { Fields } from "../parts/fields.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";
import { cancelPending } from "./cancel-pending.ts";
import type { Queue } from "./queue-record.ts";
import { GraphTable, ServerTable, ThreadTable, waitText, type RequestCancel } from "./queue-tables.tsx";
import { PendingRuns } from "./pending-runs.tsx";
import styles from "./queue.module.css";

const POLL_MS = 3_000;

const counted = (count: number): string => (count === 1 ? "the pending run" : `${count} pending runs`);

const Figures = ({ queue, onCancel }: { queue: Queue; onCancel: RequestCancel }) => (
  <>
    <Fields
      fields={[
        ["Pending", queue.is_complete ? queue.num_pending : `${queue.num_pending} or more`],
        ["Of these, for later", queue.num_scheduled],
        ["Oldest pending for", waitText(queue.oldest_seconds)],
        ["Running", queue.num_running],
        [
          "Slots of this server",
          queue.slots === null ? "none" : `${queue.slots.active} of ${queue.slots.max}`,
        ],
      ]}
    />
    <section className="stack">
      <h2>By graph</h2>
      {queue.graphs.length === 0 ? (
        <Empty>No run is pending or running.</Empty>
      ) : (
        <GraphTable graphs={queue.graphs} onCancel={onCancel} />
      )}
    </section>
    {queue.threads.length > 0 && (
      <section className="stack">
        <h2>By thread</h2>
        <ThreadTable threads={queue.threads} onCancel={onCancel} />
      </section>
    )}
    <section className="stack">
      <h2>Servers</h2>
      <ServerTable servers={queue.servers} slots={queue.slots} />
    </section>
  </>
);

interface Cancellation {
  question: string;
  cancel(action: CancelAction): Promise<unknown>;
}

export default function QueuePage() {
  const connection = useConnection();
  const queries = useQueryClient();
  const [cancellation, setCancellation] = useState<Cancellation>();
  const { data, error, isLoading, refetch } = useQuery({
    queryKey: ["queue"],
    queryFn: () => connection.request<Queue>("GET", "/queue"),
    refetchInterval: refetchEvery(POLL_MS),
  });
  const requestCancel: RequestCancel = ({ filter, count, of }) =>
    setCancellation({
      question: `Cancel ${counted(count)} of ${of}?`,
      cancel: (action) => cancelPending(connection, filter, action),
    });
  return (
    <div className={styles.page}>
      <PageHead
        title="Queue"
        actions={
          data !== undefined &&
          data.num_pending > 0 && (
            <button
              type="button"
              className="plain danger"
              onClick={() => requestCancel({ filter: {}, count: data.num_pending, of: "the queue" })}
            >
              Cancel all pending runs
            </button>
          )
        }
      />
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isLoading && <Skeleton lines={6} label="Loading the queue" />}
      {data !== undefined && <Figures queue={data} onCancel={requestCancel} />}
      <PendingRuns
        pollMs={POLL_MS}
        onCancel={({ thread_id, run_id }) =>
          setCancellation({
            question: "Cancel the run?",
            cancel: (action) =>
              connection.request("POST", `/threads/${thread_id}/runs/${run_id}/cancel?action=${action}`),
          })
        }
      />
      {cancellation !== undefined && (
        <CancelDialog
          question={cancellation.question}
          onCancel={async (action) => {
            await cancellation.cancel(action);
            await Promise.all([
              queries.invalidateQueries({ queryKey: ["queue"] }),
              queries.invalidateQueries({ queryKey: ["runs"] }),
            ]);
          }}
          onClose={() => setCancellation(undefined)}
        />
      )}
    </div>
  );
}
