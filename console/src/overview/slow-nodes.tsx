import { truncate } from "../design/truncate.ts";
import { Empty } from "../parts/notice.tsx";
import { durationText } from "../parts/time.tsx";
import { DataTable } from "./data-table.tsx";
import { countText, shareText } from "./numbers.ts";
import type { NodeSample } from "./sampled-nodes.ts";
import styles from "./overview.module.css";

const SHOWN_AT_MOST = 10;

export const SlowNodes = ({ sample: { runs, nodes } }: { sample: NodeSample }) => {
  if (runs === 0) return <Empty>No run has ended.</Empty>;
  if (nodes.length === 0)
    return (
      <Empty>
        The newest runs have no traces. If the server has the option <code>TRACES=off</code> or{" "}
        <code>TRACES=errors</code>, start it with <code>TRACES=all</code>.
      </Empty>
    );
  const all = nodes.reduce((sum, { ownMs }) => sum + ownMs, 0);
  return (
    <>
      <p className={styles.note}>
        {runs === 1 ? "A sample: the newest ended run." : `A sample: the newest ${runs} ended runs.`} Own time
        is without the nodes inside a node.
      </p>
      <DataTable
        label="Nodes by their own time"
        columns={["Node", "Graph", "Executions", "Own time", "Mean", "Share"]}
        texts={[1]}
        rows={nodes.slice(0, SHOWN_AT_MOST).map(({ graphId, name, calls, ownMs }) => ({
          id: JSON.stringify([graphId, name]),
          cells: [
            truncate(name),
            truncate(graphId),
            countText(calls),
            durationText(ownMs),
            durationText(ownMs / calls),
            <span key="share" className={styles.share}>
              <span aria-hidden className={styles.track}>
                <span style={{ width: `${(ownMs / Math.max(all, 1)) * 100}%` }} />
              </span>
              {shareText(ownMs, all)}
            </span>,
          ],
        }))}
      />
    </>
  );
};
