import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useDeferredValue, useId, useState } from "react";
import { Link } from "wouter";
import { Confirmation } from "../parts/dialog.tsx";
import { distinct } from "../parts/distinct.ts";
import { Empty, FaultNotice } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { askedEvery } from "../server/queries.ts";
import { useConnection } from "../server/connection.tsx";
import { textOf } from "./messages.ts";
import { titleOf } from "./thread-record.ts";
import { readSearch, type ThreadSearch } from "./thread-search.ts";
import styles from "./thread-list.module.css";

const PAGE = 30;
const ASKED_EVERY_MS = 4_000;
const TITLE_CHARACTERS = 80;

interface ListedThread {
  thread_id: string;
  status: string;
  updated_at: string;
  metadata: Record<string, unknown> | null;
  extracted?: { first?: unknown };
}

/** How a thread is called in the list: by its title, else by what was said first, else by its id. */
const nameOf = ({ thread_id, metadata, extracted }: ListedThread): string => {
  const text = titleOf(metadata) ?? textOf(extracted?.first).trim();
  return text === "" ? thread_id : text.slice(0, TITLE_CHARACTERS);
};

const useThreads = ({ ids, metadata }: ThreadSearch) => {
  const { client } = useConnection();
  return useInfiniteQuery({
    queryKey: ["threads", "list", ids, metadata],
    initialPageParam: 0,
    queryFn: async ({ pageParam }) =>
      (await client.threads.search({
        limit: PAGE,
        offset: pageParam,
        sortBy: "updated_at",
        sortOrder: "desc",
        select: ["thread_id", "status", "updated_at", "metadata"],
        extract: { first: "values.messages[0].content" },
        ...(ids !== undefined && { ids: [...ids] }),
        ...(metadata !== undefined && { metadata }),
      })) as unknown as ListedThread[],
    getNextPageParam: (last, pages) => (last.length < PAGE ? undefined : pages.length * PAGE),
    refetchInterval: (query) =>
      askedEvery((query.state.data?.pages.length ?? 0) > 1 ? false : ASKED_EVERY_MS)(query),
  });
};

interface ThreadListProps {
  current: string | undefined;
  /** A thread was chosen, or a new one. */
  onChoose(): void;
  onDeleted(threadId: string): void;
}

/** All threads, those first in which something happened last. */
export const ThreadList = ({ current, onChoose, onDeleted }: ThreadListProps) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const search = readSearch(useDeferredValue(text));
  const threads = useThreads(search);
  const [asked, setAsked] = useState<ListedThread>();
  const id = useId();
  const remove = useMutation({
    mutationFn: (threadId: string) => client.threads.delete(threadId),
    onSuccess: (_, threadId) => {
      void queries.invalidateQueries({ queryKey: ["threads", "list"] });
      onDeleted(threadId);
    },
  });
  const loaded = distinct(threads.data?.pages.flat() ?? [], ({ thread_id }) => thread_id);
  const { words } = search;
  const shown =
    words === undefined
      ? loaded
      : loaded.filter((thread) =>
          `${nameOf(thread)} ${JSON.stringify(thread.metadata)}`.toLowerCase().includes(words),
        );
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
          A text filters the threads that are listed; an id, or metadata as key=value or JSON, is looked for
          among all.
        </p>
      </div>
      <FaultNotice error={threads.error ?? remove.error} />
      <ul className={styles.threads}>
        {shown.map((thread) => (
          <li key={thread.thread_id} data-current={thread.thread_id === current}>
            <Link
              href={`/threads/${thread.thread_id}`}
              aria-current={thread.thread_id === current ? "page" : undefined}
              onClick={onChoose}
            >
              <span className={styles.name}>{nameOf(thread)}</span>
              <span className={styles.about}>
                <Status status={thread.status} />{" "}
                <span className="faint">{String(thread.metadata?.["graph_id"] ?? "")}</span>{" "}
                <Time iso={thread.updated_at} />
              </span>
            </Link>
            <button
              type="button"
              className="plain"
              aria-label={`Delete the thread ${nameOf(thread)}`}
              title="Delete"
              onClick={() => setAsked(thread)}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      {!threads.isPending && shown.length === 0 && (
        <Empty>{text === "" ? "There are no threads yet." : "No thread is found."}</Empty>
      )}
      {threads.hasNextPage && (
        <button
          type="button"
          disabled={threads.isFetchingNextPage}
          onClick={() => void threads.fetchNextPage()}
        >
          More
        </button>
      )}
      {asked !== undefined && (
        <Confirmation
          question={`Delete the thread “${nameOf(asked)}” with all its states?`}
          action="Delete"
          onConfirm={() => remove.mutate(asked.thread_id)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </div>
  );
};
