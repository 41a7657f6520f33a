import { errorLine, isOver, durationOf, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { RecordLink } from "../parts/record-link.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useNow } from "../parts/use-now.ts";
import styles from "./runs.module.css";

interface RunTableProps {
  runs: readonly Run[];
  selected: ReadonlySet<string>;
  onSelect(runIds: readonly string[], isSelected: boolean): void;
  pathOf(runId: string): string;
}

const Started = ({ run, now }: { run: Run; now: number }) => {
  if (run.run_started_at != null) return <Time iso={run.run_started_at} />;
  if (isOver(run)) return <>never</>;
  const isForLater = run.available_at !== undefined && Date.parse(run.available_at) > now;
  return isForLater ? (
    <>
      due <Time iso={run.available_at ?? ""} />
    </>
  ) : (
    <>
      pending since <Time iso={run.created_at} />
    </>
  );
};

export const RunTable = ({ runs, selected, onSelect, pathOf }: RunTableProps) => {
  const now = useNow(runs.some((run) => !isOver(run)));
  return (
    <Table
      label="Runs"
      columns={[
        <input
          key="all"
          type="checkbox"
          aria-label="Select all runs"
          checked={runs.length > 0 && runs.every(({ run_id }) => selected.has(run_id))}
          onChange={({ target }) =>
            onSelect(
              runs.map(({ run_id }) => run_id),
              target.checked,
            )
          }
        />,
        "Run",
        "Status",
        "Graph",
        "Started",
        "Duration",
        "Attempts",
        "Thread",
        "Error",
      ]}
    >
      {runs.map((run) => (
        <tr key={run.run_id} data-run={run.run_id}>
          <td>
            <input
              type="checkbox"
              aria-label={`Select run ${run.run_id}`}
              checked={selected.has(run.run_id)}
              onChange={({ target }) => onSelect([run.run_id], target.checked)}
            />
          </td>
          <td>
            <RecordLink id={run.run_id} href={pathOf(run.run_id)} />
          </td>
          <td>
            <Status status={run.status} />
          </td>
          <td>{run.graph_id}</td>
          <td>
            <Started run={run} now={now} />
          </td>
          <td className={styles.number}>{durationOf(run, now)}</td>
          <td className={styles.number}>{run.attempts}</td>
          <td>
            <RecordLink id={run.thread_id} href={`/threads/${run.thread_id}`} />
          </td>
          <td className={styles.error} title={errorLine(run)}>
            {errorLine(run)}
          </td>
        </tr>
      ))}
    </Table>
  );
};
