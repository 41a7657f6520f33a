import { Link } from "wouter";
import { RecordLink, shortId } from "../parts/record-link.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import type { Cron } from "./cron.ts";
import { scheduleWords } from "./schedule-words.ts";
import styles from "./crons.module.css";

interface CronTableProps {
  crons: readonly Cron[];
  assistantNames: ReadonlyMap<string, string>;
  onToggle(cron: Cron): void;
  onEdit(cron: Cron): void;
  onDelete(cron: Cron): void;
}

const STATE = new Map([
  [true, "enabled"],
  [false, "paused"],
]);

export const CronTable = ({ crons, assistantNames, onToggle, onEdit, onDelete }: CronTableProps) => (
  <Table label="Crons" columns={["Schedule", "Next run", "Assistant", "Thread", "State", "Actions"]}>
    {crons.map((cron) => {
      const { cron_id, schedule, timezone, next_run_date, assistant_id, thread_id, enabled, error } = cron;
      const words = scheduleWords(schedule);
      return (
        <tr key={cron_id} data-cron={cron_id}>
          <td className={styles.schedule}>
            <code>{schedule}</code> <span className="faint">{timezone ?? "UTC"}</span>
            {words !== undefined && <div>{words}</div>}
          </td>
          <td>
            {next_run_date === null ? "none" : <Time iso={next_run_date} timeZone={timezone ?? "UTC"} />}
          </td>
          <td>
            <Link href={`/assistants/${assistant_id}`} title={assistant_id}>
              {assistantNames.get(assistant_id) ?? `…${shortId(assistant_id)}`}
            </Link>
          </td>
          <td>
            {thread_id === null ? (
              "new for each run"
            ) : (
              <RecordLink id={thread_id} href={`/threads/${thread_id}`} />
            )}
          </td>
          <td>
            {STATE.get(enabled)}
            {error !== null && <div className={styles.error}>{error}</div>}
          </td>
          <td>
            <div className={styles.actions}>
              <Link href={`/crons?cron=${cron_id}`} aria-label={`Runs of ${schedule}`}>
                Runs
              </Link>
              <button
                type="button"
                className="small"
                aria-label={`${enabled ? "Pause" : "Resume"} ${schedule}`}
                onClick={() => onToggle(cron)}
              >
                {enabled ? "Pause" : "Resume"}
              </button>
              <button
                type="button"
                className="small"
                aria-label={`Edit ${schedule}`}
                onClick={() => onEdit(cron)}
              >
                Edit
              </button>
              <button
                type="button"
                className="small danger"
                aria-label={`Delete ${schedule}`}
                onClick={() => onDelete(cron)}
              >
                Delete
              </button>
            </div>
          </td>
        </tr>
      );
    })}
  </Table>
);
