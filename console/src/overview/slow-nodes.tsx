import { truncate } from "../design/truncate.ts";
import { Empty } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { durationText } from "../parts/time.tsx";
import { countText, shareText } from "./numbers.ts";
import type { NodeSample } from "./sampled-nodes.ts";
import styles from "./overview.module.css";

const SHOWN_AT_MOST = 8;

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
      <Table
        label="Nodes by their own time"
        columns={["Node", "Graph", "Executions", "Own time", "Share"]}
        numbers={[2, 3, 4]}
      >
        {nodes.slice(0, SHOWN_AT_MOST).map(({ graphId, name, calls, ownMs }) => (
          <tr key={JSON.stringify([graphId, name])}>
            <td>
              <span className={styles.name} title={name}>
                {truncate(name)}
              </span>
            </td>
            <td>
              <span className={styles.name} title={graphId}>
                {truncate(graphId)}
              </span>
            </td>
            <td className={styles.number}>{countText(calls)}</td>
            <td className={styles.number}>{durationText(ownMs)}</td>
            <td className={styles.number}>
              <span className={styles.share}>
                <span aria-hidden className={styles.track}>
                  <span style={{ width: `${(ownMs / Math.max(all, 1)) * 100}%` }} />
                </span>
                <span className={styles.percent}>{shareText(ownMs, all)}</span>
              </span>
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
};
