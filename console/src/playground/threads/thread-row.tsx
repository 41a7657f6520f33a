import { Trash2 } from "lucide-react";
import { Link } from "wouter";
import { threadName } from "../../parts/thread-name.ts";
import { IconButton } from "../../design/icon-button.tsx";
import type { ListedThread } from "./listed-threads.ts";
import { ageText } from "./thread-groups.ts";
import styles from "./thread-list.module.css";

const STATUS_WORDS: ReadonlyMap<string, string> = new Map([
  ["busy", "running"],
  ["interrupted", "waits for you"],
  ["error", "failed"],
]);

interface ThreadRowProps {
  thread: ListedThread;
  now: number;
  isCurrent: boolean;
  isSelected: boolean;
  /** Whether the row is the one that Tab reaches. */
  isActive: boolean;
  onChoose?: (() => void) | undefined;
  onSelect(thread: ListedThread, isSelected: boolean, withShift: boolean): void;
  onDelete(thread: ListedThread): void;
}

export const ThreadRow = (props: ThreadRowProps) => {
  const { thread, now, isCurrent, isSelected, isActive, onChoose, onSelect, onDelete } = props;
  const name = threadName(thread);
  const words = STATUS_WORDS.get(thread.status);
  const tabIndex = isActive ? 0 : -1;
  return (
    <>
      <input
        type="checkbox"
        className={styles.check}
        aria-label={`Select thread ${name}`}
        tabIndex={tabIndex}
        checked={isSelected}
        onChange={({ target, nativeEvent }) =>
          onSelect(thread, target.checked, (nativeEvent as MouseEvent).shiftKey)
        }
      />
      <Link
        href={`/threads/${thread.thread_id}`}
        className={styles.link}
        title={`${name}${words === undefined ? "" : `, ${words}`}\n${new Date(thread.updated_at).toLocaleString("en-GB")}`}
        tabIndex={tabIndex}
        aria-current={isCurrent ? "page" : undefined}
        onClick={onChoose}
      >
        {words !== undefined && (
          <span className={styles.dot} data-status={thread.status}>
            <span className="unseen">{words}:</span>
          </span>
        )}
        <span className={styles.name}>{name}</span>
        <time className={styles.age} dateTime={thread.updated_at}>
          {ageText(thread.updated_at, now)}
        </time>
      </Link>
      <IconButton
        label={`Delete thread ${name}`}
        icon={Trash2}
        size="small"
        tabIndex={tabIndex}
        onClick={() => onDelete(thread)}
      />
    </>
  );
};
