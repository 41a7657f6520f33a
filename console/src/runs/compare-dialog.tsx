import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Dialog } from "../design/dialog.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { shortId } from "../parts/record-link.tsx";
import { durationOf, LISTED_FIELDS, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import styles from "./run-page.module.css";

const OFFERED = 30;

export const comparePath = (left: string, right: string): string =>
  `/runs/compare?left=${encodeURIComponent(left)}&right=${encodeURIComponent(right)}`;

/** Offers recent runs: of the same thread, then of the same graph. */
export const CompareDialog = ({ run, onClose }: { run: Run; onClose(): void }) => {
  const { search } = useConnection();
  const find = async (filter: object): Promise<Run[]> =>
    (await search<Run>("/runs/search", { ...filter, limit: OFFERED, select: LISTED_FIELDS })).items;
  const { data, error, isPending, refetch, dataUpdatedAt } = useQuery({
    queryKey: ["runs", "to compare", run.run_id],
    queryFn: async () => {
      const [ofThread, ofGraph] = await Promise.all([
        find({ thread_id: run.thread_id }),
        find(run.graph_id === undefined ? {} : { graph_id: run.graph_id }),
      ]);
      const found = new Map([...ofThread, ...ofGraph].map((one) => [one.run_id, one]));
      found.delete(run.run_id);
      return [...found.values()].slice(0, OFFERED);
    },
  });
  return (
    <Dialog title="Compare with another run" onClose={onClose}>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isPending && <Skeleton lines={5} label="Loading runs" />}
      {data?.length === 0 && <Empty>There is no other run of this graph or thread.</Empty>}
      <ul className={styles.choices}>
        {data?.map((other) => (
          <li key={other.run_id}>
            <Link href={comparePath(run.run_id, other.run_id)} onClick={onClose}>
              <Status status={other.status} />
              <span>
                <code>…{shortId(other.run_id)}</code>
                {other.thread_id === run.thread_id && <span className="faint"> same thread</span>}
              </span>
              <span className="faint">
                <Time iso={other.created_at} />
                {other.run_ended_at != null && `, ${durationOf(other, dataUpdatedAt) ?? ""}`}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Dialog>
  );
};
