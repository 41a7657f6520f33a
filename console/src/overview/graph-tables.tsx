import type { ReactNode } from "react";
import { Link } from "wouter";
import { truncate } from "../design/truncate.ts";
import { Empty } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { durationText } from "../parts/time.tsx";
import { countText, shareText } from "./numbers.ts";
import { allOf, failedOf, useLastErrors, type GraphCounts, type Summary } from "./queries.ts";
import styles from "./overview.module.css";

const SHOWN_AT_MOST = 8;

interface GraphLinkProps {
  id: string;
  from: string;
  status?: "error" | "timeout";
  /** Without it: the name of the graph. */
  words?: string;
}

/** To the runs of a graph. */
const GraphLink = ({ id, from, status, words = truncate(id) }: GraphLinkProps) => {
  const filter = new URLSearchParams({ ...(status !== undefined && { status }), graph: id, from });
  return (
    <Link href={`/runs?${filter}`} className={styles.name} title={id}>
      {words}
    </Link>
  );
};

/** Says that the tables of graphs may lack some. */
export const LackingGraphs = ({ summary }: { summary: Summary }) =>
  !summary.is_complete && (
    <p className="faint">
      There are more graphs than the server sums at once. Those with few runs are not listed.
    </p>
  );

export const FailingGraphs = ({ summary: { graphs, from } }: { summary: Summary }) => {
  const failing = graphs
    .filter((graph) => failedOf(graph) > 0)
    .sort((one, other) => failedOf(other) - failedOf(one))
    .slice(0, SHOWN_AT_MOST);
  const lastErrors = useLastErrors(failing.length > 0 ? from : undefined);
  if (failing.length === 0) return <Empty>No run has failed.</Empty>;
  const lastError = (graphId: string): ReactNode => {
    const line = lastErrors?.get(graphId);
    return line === undefined ? (
      "–"
    ) : (
      <span className={styles.error} title={line}>
        {line}
      </span>
    );
  };
  return (
    <Table
      label="Graphs with failed runs"
      columns={["Graph", "Runs", "Failed", "Share", "Last error"]}
      numbers={[1, 2, 3]}
    >
      {failing.map((graph) => (
        <tr key={graph.graph_id}>
          <td>
            <GraphLink id={graph.graph_id} from={from} status={graph.error > 0 ? "error" : "timeout"} />
          </td>
          <td className={styles.number}>{countText(allOf(graph))}</td>
          <td className={styles.number}>
            {countText(failedOf(graph))}
            {graph.error > 0 && graph.timeout > 0 && (
              <>
                {" · "}
                <GraphLink
                  id={graph.graph_id}
                  from={from}
                  status="timeout"
                  words={`${countText(graph.timeout)} timed out`}
                />
              </>
            )}
          </td>
          <td className={styles.number}>{shareText(failedOf(graph), allOf(graph))}</td>
          <td>{lastError(graph.graph_id)}</td>
        </tr>
      ))}
    </Table>
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
    <Table
      label="Graphs by the duration of their runs"
      columns={["Graph", "Runs", "Median", "95th percentile"]}
      numbers={[1, 2, 3]}
    >
      {slowest.map((graph) => (
        <tr key={graph.graph_id}>
          <td>
            <GraphLink id={graph.graph_id} from={from} />
          </td>
          <td className={styles.number}>{countText(allOf(graph))}</td>
          <td className={styles.number}>{durationText(graph.median_ms)}</td>
          <td className={styles.number}>{durationText(graph.p95_ms)}</td>
        </tr>
      ))}
    </Table>
  );
};
