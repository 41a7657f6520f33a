import { useMemo } from "react";
import { Link, useLocation } from "wouter";
import { truncate } from "../design/truncate.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import { errorLine, isOver, durationOf, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { RecordLink, shortId } from "../parts/record-link.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useNow } from "../parts/use-now.ts";
import styles from "./runs.module.css";

/** The place of this column. */
const ATTEMPTS = 7;

interface RunTableProps {
  runs: readonly Run[];
  selected: ReadonlySet<string>;
  onSelect(runIds: readonly string[], isSelected: boolean): void;
}

const millisecondsOf = ({ run_started_at: started, run_ended_at: ended }: Run, now: number): number =>
  started == null ? 0 : Math.max(0, (ended == null ? now : Date.parse(ended)) - Date.parse(started));

/** Among the rows, on a logarithmic scale: one run of an hour would flatten all others. */
const shareOf = (milliseconds: number, longest: number): number =>
  longest <= 0 ? 0 : (Math.log1p(milliseconds) / Math.log1p(longest)) * 100;

const CreatedAt = ({ run, now }: { run: Run; now: number }) => {
  const isForLater =
    run.run_started_at == null &&
    !isOver(run) &&
    run.available_at !== undefined &&
    Date.parse(run.available_at) > now;
  return isForLater ? (
    <>
      due <Time iso={run.available_at ?? ""} />
    </>
  ) : (
    <Time iso={run.created_at} />
  );
};

const linkOf = (row: Element | null | undefined): HTMLElement | null =>
  row?.querySelector<HTMLElement>("a[data-open]") ?? null;
const currentRow = (): Element | null => document.activeElement?.closest("tr[data-run]") ?? null;

/** J and K move the focus from row to row, so Enter opens a run as its link does. */
const moveFocus = (isDown: boolean): void => {
  const rows = [...document.querySelectorAll("tr[data-run]")];
  const now = currentRow();
  const next = now === null ? 0 : rows.indexOf(now) + (isDown ? 1 : -1);
  linkOf(rows[Math.max(0, next)])?.focus();
};

export const RunTable = ({ runs, selected, onSelect }: RunTableProps) => {
  const [, navigate] = useLocation();
  const now = useNow(runs.some((run) => !isOver(run)));
  const longest = Math.max(...runs.map((run) => millisecondsOf(run, now)));
  const commands = useMemo<Command[]>(
    () => [
      { label: "Next run", group: "Runs", keys: "j", run: () => moveFocus(true) },
      { label: "Previous run", group: "Runs", keys: "k", run: () => moveFocus(false) },
      {
        label: "Select run",
        group: "Runs",
        keys: "x",
        run: () => {
          const id = currentRow()?.getAttribute("data-run");
          if (id != null) onSelect([id], !selected.has(id));
        },
      },
    ],
    [onSelect, selected],
  );
  useCommands(commands);
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
        "Status",
        "Run",
        "Graph",
        "Thread",
        "Created",
        "Duration",
        "Attempts",
        "Error",
      ]}
      numbers={[ATTEMPTS]}
    >
      {runs.map((run) => (
        <tr
          key={run.run_id}
          data-run={run.run_id}
          data-selected={selected.has(run.run_id)}
          className={styles.line}
          onClick={({ target }) => {
            if (target instanceof Element && target.closest("a, input, button, label") === null)
              navigate(`/runs/${run.run_id}`);
          }}
        >
          <td className={styles.check}>
            <input
              type="checkbox"
              aria-label={`Select run ${run.run_id}`}
              checked={selected.has(run.run_id)}
              onChange={({ target }) => onSelect([run.run_id], target.checked)}
            />
          </td>
          <td>
            <Status status={run.status} />
          </td>
          <td>
            <Link href={`/runs/${run.run_id}`} title={run.run_id} data-open>
              <code>…{shortId(run.run_id)}</code>
            </Link>
          </td>
          <td>{run.graph_id !== undefined && truncate(run.graph_id)}</td>
          <td className={styles.extra}>
            <RecordLink id={run.thread_id} href={`/threads/${run.thread_id}`} />
          </td>
          <td>
            <CreatedAt run={run} now={now} />
          </td>
          <td className={styles.duration}>
            {run.run_started_at == null ? (isOver(run) ? "never started" : "waits") : durationOf(run, now)}
            <span aria-hidden className={styles.share}>
              <span style={{ width: `${shareOf(millisecondsOf(run, now), longest)}%` }} />
            </span>
          </td>
          <td className={`${styles.extra} ${styles.number}`}>{run.attempts}</td>
          <td className={styles.error} title={errorLine(run)}>
            {errorLine(run)}
          </td>
        </tr>
      ))}
    </Table>
  );
};
