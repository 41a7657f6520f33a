import { useQuery } from "@tanstack/react-query";
import { Dialog } from "../design/dialog.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { errorLine, isOver, LISTED_FIELDS, durationOf, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { RecordLink } from "../parts/record-link.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useNow } from "../parts/use-now.ts";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";
import type { Cron } from "./cron.ts";

const SHOWN_AT_MOST = 20;
const POLL_MS = 3_000;

/** By the id of the cron in their metadata. */
export const CronRuns = ({ cronId, onClose }: { cronId: string; onClose(): void }) => {
  const { request, search } = useConnection();
  const { data, error } = useQuery({
    queryKey: ["runs", "of cron", cronId],
    queryFn: async () => {
      const cron = await request<Cron>("GET", `/runs/crons/${cronId}`);
      const { items } = await search<Run>("/runs/search", {
        metadata: { cron_id: cronId },
        // Lets the server use an index.
        created_after: cron.created_at,
        ...(cron.thread_id !== null && { thread_id: cron.thread_id }),
        limit: SHOWN_AT_MOST,
        select: LISTED_FIELDS,
      });
      return { cron, runs: items };
    },
    refetchInterval: refetchEvery(POLL_MS),
  });
  const runs = data?.runs ?? [];
  const now = useNow(runs.some((run) => !isOver(run)));
  return (
    <Dialog title={`Last runs of ${data?.cron.schedule ?? "the cron"}`} onClose={onClose}>
      <ErrorNotice error={error} />
      {data !== undefined && runs.length === 0 && (
        <Empty>The cron has no runs yet, or they were deleted.</Empty>
      )}
      {runs.length > 0 && (
        <Table label="Last runs" columns={["Run", "Status", "Created", "Duration", "Error"]}>
          {runs.map((run) => (
            <tr key={run.run_id}>
              <td>
                <RecordLink id={run.run_id} href={`/runs/${run.run_id}`} />
              </td>
              <td>
                <Status status={run.status} />
              </td>
              <td>
                <Time iso={run.created_at} />
              </td>
              <td>{durationOf(run, now)}</td>
              <td>{errorLine(run)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Dialog>
  );
};
