import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useDeferredValue, useId, useState } from "react";
import { Link } from "wouter";
import { Confirmation } from "../design/dialog.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import { useListedThreads, type ListedThread } from "./listed-threads.ts";
import { firstWords, titleOf } from "./thread-record.ts";
import { readSearch } from "./thread-search.ts";
import styles from "./thread-list.module.css";

/** The title, else the first message, else the id. */
const nameOf = ({ thread_id, metadata, extracted }: ListedThread): string =>
  titleOf(metadata) ?? firstWords(extracted?.first) ?? thread_id;

const contains = (thread: ListedThread, words: string): boolean =>
  `${nameOf(thread)} ${JSON.stringify(thread.metadata)}`.toLowerCase().includes(words);

const searchedText = (
  count: number,
  { total, hasMore, isSearching }: { total: number | undefined; hasMore: boolean; isSearching: boolean },
): string => {
  const known = total === undefined ? "" : ` of ${total.toLocaleString("en")}`;
  const threads = hasMore || isSearching ? `the ${count.toLocaleString("en")} newest${known}` : "all";
  return `${isSearching ? "Searching" : "Searched"} names, first messages and metadata of ${threads} threads.`;
};

interface ThreadListProps {
  current: string | undefined;
  /** Also for a new thread. */
  onChoose(): void;
  onDeleted(threadId: string): void;
}

export const ThreadList = ({ current, onChoose, onDeleted }: ThreadListProps) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const search = readSearch(useDeferredValue(text));
  const threads = useListedThreads(search);
  const [deleting, setDeleting] = useState<ListedThread>();
  const id = useId();
  const remove = useMutation({
    mutationFn: (threadId: string) => client.threads.delete(threadId),
    onSuccess: (_, threadId) => {
      void queries.invalidateQueries({ queryKey: ["threads", "list"] });
      onDeleted(threadId);
    },
  });
  const { loaded } = threads;
  const { words } = search;
  const shown = words === undefined ? loaded : loaded.filter((thread) => contains(thread, words));
  return (
    <div className={styles.list}>
      <Link href="/" className={styles.new} onClick={onChoose}>
        New thread
      </Link>
      <div>
        <label htmlFor={id} className="unseen">
          Search threads
        </label>
        <input
          id={id}
          type="search"
          placeholder="Text, id, or key=value"
          className={styles.search}
          value={text}
          aria-describedby={`${id}-hint`}
          onChange={({ target }) => setText(target.value)}
        />
        <p id={`${id}-hint`} className="unseen">
          Text is searched in names, first messages and metadata of the newest threads. An id, status=idle
          (busy, interrupted, error), and metadata as key=value or JSON are searched in all threads.
        </p>
      </div>
      <ErrorNotice error={threads.error ?? remove.error} />
      {words !== undefined && (
        <p role="status" className={styles.searched}>
          {searchedText(loaded.length, threads)}
        </p>
      )}
      <ul className={styles.threads}>
        {shown.map((thread) => (
          <li key={thread.thread_id} data-current={thread.thread_id === current}>
            <Link
              href={`/threads/${thread.thread_id}`}
              aria-current={thread.thread_id === current ? "page" : undefined}
              onClick={onChoose}
            >
              <span className={styles.name} title={nameOf(thread)}>
                {nameOf(thread)}
              </span>
              <span className={styles.about}>
                <Status status={thread.status} /> <Time iso={thread.updated_at} />{" "}
                <span className={styles.graph}>{String(thread.metadata?.["graph_id"] ?? "")}</span>
              </span>
            </Link>
            <button
              type="button"
              className="plain"
              aria-label={`Delete thread ${nameOf(thread)}`}
              title="Delete"
              onClick={() => setDeleting(thread)}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      {!threads.isPending && !threads.isSearching && shown.length === 0 && (
        <Empty>{text === "" ? "No threads yet." : "No thread found."}</Empty>
      )}
      {threads.hasMore && (
        <button type="button" disabled={threads.isFetchingMore} onClick={threads.more}>
          {words === undefined ? "More" : "Search older threads"}
        </button>
      )}
      {deleting !== undefined && (
        <Confirmation
          question={`Delete thread “${nameOf(deleting)}” with all its checkpoints?`}
          action="Delete"
          onConfirm={() => remove.mutate(deleting.thread_id)}
          onClose={() => setDeleting(undefined)}
        />
      )}
    </div>
  );
};
