import { Link } from "wouter";
import { truncate } from "../design/truncate.ts";
import { Empty } from "../parts/notice.tsx";
import { durationText } from "../parts/time.tsx";
import { DataTable } from "./data-table.tsx";
import { countText, shareText } from "./numbers.ts";
import { allOf, failedOf, useLastErrors, type GraphCounts, type Summary } from "./queries.ts";
import styles from "./overview.module.css";

const SHOWN_AT_MOST = 10;

const runsOf = (graphId: string, from: string, status?: string): string =>
  `/runs?${status === undefined ? "" : `status=${status}&`}graph=${encodeURIComponent(graphId)}&from=${encodeURIComponent(from)}`;

export const FailingGraphs = ({ summary: { graphs, from } }: { summary: Summary }) => {
  const failing = graphs
    .filter((graph) => failedOf(graph) > 0)
    .sort((one, other) => failedOf(other) - failedOf(one))
    .slice(0, SHOWN_AT_MOST);
  const lastErrors = useLastErrors(failing.length > 0 ? from : undefined);
  if (failing.length === 0) return <Empty>No run has failed.</Empty>;
  const lastError = (graphId: string): string => lastErrors?.get(graphId) ?? "–";
  return (
    <DataTable
      label="Graphs with failed runs"
      columns={["Graph", "Runs", "Failed", "Share", "Last error"]}
      texts={[4]}
      rows={failing.map((graph) => ({
        id: graph.graph_id,
        cells: [
          <Link key="graph" href={runsOf(graph.graph_id, from, graph.error > 0 ? "error" : "timeout")}>
            {truncate(graph.graph_id)}
          </Link>,
          countText(allOf(graph)),
          countText(failedOf(graph)),
          shareText(failedOf(graph), allOf(graph)),
          <span key="error" className={styles.error} title={lastError(graph.graph_id)}>
            {lastError(graph.graph_id)}
          </span>,
        ],
      }))}
    />
  );
};

const hasEnded = (graph: GraphCounts): graph is GraphCounts & { median_ms: number; p95_ms: number } =>
  graph.median_ms !== null && graph.p95_ms !== null;

export const SlowGraphs = ({ summary: { graphs, from } }: { summary: Summary }) => {
  const slowest = graphs
    .filter(hasEnded)
    .sort((one, other) => other.p95_ms - one.p95_ms)
    .slice(0, SHOWN_AT_MOST);
  if (slowest.length === 0) return <Empty>No run has ended.</Empty>;
  return (
    <DataTable
      label="Graphs by the duration of their runs"
      columns={["Graph", "Runs", "Median", "95th percentile"]}
      rows={slowest.map((graph) => ({
        id: graph.graph_id,
        cells: [
          <Link key="graph" href={runsOf(graph.graph_id, from)}>
            {truncate(graph.graph_id)}
          </Link>,
          countText(allOf(graph)),
          durationText(graph.median_ms),
          durationText(graph.p95_ms),
        ],
      }))}
    />
  );
};
