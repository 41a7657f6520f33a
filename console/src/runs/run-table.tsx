import { Link } from "wouter";
import { errorLine, isOver, shortId, tookText, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useNow } from "../parts/use-now.ts";
import styles from "./runs.module.css";

interface RunTableProps {
  runs: readonly Run[];
  selected: ReadonlySet<string>;
  onSelect(runIds: readonly string[], isSelected: boolean): void;
  /** The address that opens one. */
  placeOf(runId: string): string;
}

const Begin = ({ run, now }: { run: Run; now: number }) => {
  if (run.run_started_at != null) return <Time iso={run.run_started_at} />;
  if (isOver(run)) return <>never</>;
  const isForLater = run.available_at !== undefined && Date.parse(run.available_at) > now;
  return isForLater ? (
    <>
      due <Time iso={run.available_at ?? ""} />
    </>
  ) : (
    <>
      waits since <Time iso={run.created_at} />
    </>
  );
};

/** Runs, a row each. */
export const RunTable = ({ runs, selected, onSelect, placeOf }: RunTableProps) => {
  const now = useNow(runs.some((run) => !isOver(run)));
  return (
    <Table
      label="Runs"
      head={
        <>
          <th scope="col">
            <input
              type="checkbox"
              aria-label="Select all runs"
              checked={runs.length > 0 && runs.every(({ run_id }) => selected.has(run_id))}
              onChange={({ target }) =>
                onSelect(
                  runs.map(({ run_id }) => run_id),
                  target.checked,
                )
              }
            />
          </th>
          <th scope="col">Run</th>
          <th scope="col">Status</th>
          <th scope="col">Graph</th>
          <th scope="col">Started</th>
          <th scope="col">Duration</th>
          <th scope="col">Attempts</th>
          <th scope="col">Thread</th>
          <th scope="col">Error</th>
        </>
      }
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
            <Link href={placeOf(run.run_id)} title={run.run_id}>
              <code>…{shortId(run.run_id)}</code>
            </Link>
          </td>
          <td>
            <Status status={run.status} />
          </td>
          <td>{run.graph_id}</td>
          <td>
            <Begin run={run} now={now} />
          </td>
          <td className={styles.number}>{tookText(run, now)}</td>
          <td className={styles.number}>{run.attempts}</td>
          <td>
            <Link href={`/threads/${run.thread_id}`} title={run.thread_id}>
              <code>…{shortId(run.thread_id)}</code>
            </Link>
          </td>
          <td className={styles.error} title={errorLine(run)}>
            {errorLine(run)}
          </td>
        </tr>
      ))}
    </Table>
  );
};
