import { Link } from "wouter";
import { truncate } from "../design/truncate.ts";
import { threadName } from "../parts/thread-name.ts";
import { Time } from "../parts/time.tsx";
import { assigneeOf, graphOf, type WaitingThread } from "./waiting-list.ts";
import styles from "./inbox.module.css";

interface ListProps {
  threads: readonly WaitingThread[];
  selected: string | undefined;
  /** By a key: the focus goes to the question. */
  onEnter(threadId: string): void;
}

export const List = ({ threads, selected, onEnter }: ListProps) => (
  <ul className={styles.threads} aria-label="Waiting threads">
    {threads.map((thread) => {
      const { thread_id: id, state_updated_at: since } = thread;
      const name = truncate(threadName(thread));
      const assignee = assigneeOf(thread);
      return (
        <li key={id}>
          <Link
            href={`/inbox/${id}`}
            className={styles.thread}
            aria-current={id === selected ? "true" : undefined}
            data-thread={id}
            onClick={({ detail }) => detail === 0 && onEnter(id)}
          >
            <span className={styles.name} title={name}>
              {name}
            </span>
            <span className={styles.since}>
              <Time iso={since} />
            </span>
            <span className={styles.of}>{truncate(graphOf(thread) ?? "")}</span>
            {assignee !== undefined && <span className={styles.owner}>{truncate(assignee)}</span>}
          </Link>
        </li>
      );
    })}
  </ul>
);
