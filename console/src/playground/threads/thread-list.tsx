import { ListChecks, MessagesSquare, Plus, Search, SearchX, X } from "lucide-react";
import { useDeferredValue, useId, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { Chip } from "../../design/chip.tsx";
import { Confirmation } from "../../design/dialog.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { IconButton } from "../../design/icon-button.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { Spinner } from "../../design/spinner.tsx";
import { useCommands, type Command } from "../../parts/commands.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";
import { useNavigate } from "../../parts/use-navigate.ts";
import { useNow } from "../../parts/use-now.ts";
import { useDeleteThreads } from "./delete-threads.ts";
import { useListedThreads, type ListedThread } from "./listed-threads.ts";
import { rowsOf } from "./thread-groups.ts";
import { threadName } from "../../parts/thread-name.ts";
import { ThreadRows } from "./thread-rows.tsx";
import { useThreadSelection } from "./thread-selection.ts";
import { readSearch, type ThreadSearch } from "./thread-search.ts";
import styles from "./thread-list.module.css";

const AGES_EVERY_MS = 30_000;

const STATUSES = [
  ["interrupted", "Waiting"],
  ["busy", "Running"],
  ["error", "Failed"],
] as const;

const contains = (thread: ListedThread, words: string): boolean =>
  `${threadName(thread)} ${JSON.stringify(thread.metadata)}`.toLowerCase().includes(words);

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
  onChoose?: (() => void) | undefined;
}

export const ThreadList = ({ current, onChoose }: ThreadListProps) => {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [status, setStatus] = useState<ThreadSearch["status"]>();
  const written = readSearch(useDeferredValue(text));
  const search = status === undefined ? written : { ...written, status };
  const threads = useListedThreads(search);
  const { loaded } = threads;
  const { words } = search;
  const shown = useMemo(
    () => (words === undefined ? loaded : loaded.filter((thread) => contains(thread, words))),
    [loaded, words],
  );
  const now = useNow(true, AGES_EVERY_MS);
  const rows = useMemo(() => rowsOf(shown, now), [shown, now]);
  const { selected, select, clear } = useThreadSelection(shown);
  const [isSelecting, setIsSelecting] = useState(false);
  const [deleting, setDeleting] = useState<readonly ListedThread[]>();
  const removing = useDeleteThreads((deleted) => {
    clear();
    if (current !== undefined && deleted.includes(current)) navigate("/");
  });
  const field = useRef<HTMLInputElement>(null);
  const id = useId();

  const commands = useMemo<Command[]>(() => {
    const move = (step: 1 | -1): void => {
      const index = shown.findIndex(({ thread_id }) => thread_id === current);
      const next = shown[index + step];
      if (next !== undefined) navigate(`/threads/${next.thread_id}`);
    };
    return [
      { label: "New thread", group: "Threads", keys: "n", run: () => navigate("/") },
      { label: "Search threads", group: "Threads", keys: "/", run: () => field.current?.focus() },
      { label: "Next thread", group: "Threads", keys: "j", run: () => move(1) },
      { label: "Previous thread", group: "Threads", keys: "k", run: () => move(-1) },
    ];
  }, [shown, current, navigate]);
  useCommands(commands);
  const { hasMore, more } = threads;

  return (
    <div className={styles.list} data-selecting={isSelecting || selected.size > 0}>
      <div className={styles.top}>
        <Link href="/" className={styles.new} onClick={onChoose}>
          <Plus aria-hidden size={16} strokeWidth={1.75} />
          New thread
        </Link>
        <div className={styles.search}>
          <Search aria-hidden size={16} strokeWidth={1.75} />
          <label htmlFor={id} className="unseen">
            Search threads
          </label>
          <input
            ref={field}
            id={id}
            type="search"
            placeholder="Search threads"
            value={text}
            aria-describedby={`${id}-hint`}
            title="Words, an id, status=error, or metadata as key=value"
            onChange={({ target }) => setText(target.value)}
          />
        </div>
        <p id={`${id}-hint`} className="unseen">
          Text is searched in names, first messages and metadata of the newest threads. An id, status=idle
          (busy, interrupted, error), and metadata as key=value or JSON are searched in all threads.
        </p>
        <div className={styles.chips} role="group" aria-label="Status">
          {STATUSES.map(([value, label]) => (
            <Chip
              key={value}
              isOn={status === value}
              onToggle={() => setStatus(status === value ? undefined : value)}
            >
              {label}
            </Chip>
          ))}
          <IconButton
            label="Select threads"
            icon={ListChecks}
            size="small"
            className={styles.selecting}
            aria-pressed={isSelecting}
            onClick={() => {
              setIsSelecting(!isSelecting);
              clear();
            }}
          />
        </div>
        {(selected.size > 0 || removing.isDeleting) && (
          <div className={styles.selection}>
            <span role="status">
              {removing.isDeleting ? (
                <>
                  <Spinner /> {removing.done} deleted
                </>
              ) : (
                `${selected.size} selected`
              )}
            </span>
            <button
              type="button"
              className="danger small"
              disabled={removing.isDeleting}
              onClick={() => setDeleting([...selected.values()])}
            >
              Delete
            </button>
            <IconButton label="Select none" icon={X} size="small" onClick={clear} />
          </div>
        )}
        <ErrorNotice
          error={threads.error ?? removing.error}
          onRetry={threads.error ? threads.retry : undefined}
        />
        {words !== undefined && (
          <p role="status" className={styles.searched}>
            {searchedText(loaded.length, threads)}
          </p>
        )}
      </div>
      {threads.isPending && threads.error === null && <Skeleton lines={8} label="Loading threads" />}
      {rows.length > 0 && (
        <ThreadRows
          rows={rows}
          now={now}
          current={current}
          selected={new Set(selected.keys())}
          onChoose={onChoose}
          onSelect={select}
          onDelete={(thread) => setDeleting([thread])}
          onEnd={() => hasMore && words === undefined && more()}
        />
      )}
      {!threads.isPending && !threads.isSearching && rows.length === 0 && (
        <EmptyState
          icon={text === "" && status === undefined ? MessagesSquare : SearchX}
          title={text === "" && status === undefined ? "No threads yet." : "No thread found."}
        >
          {text === "" && status === undefined ? "Your first message begins one." : undefined}
        </EmptyState>
      )}
      {hasMore && words !== undefined && (
        <button type="button" disabled={threads.isFetchingMore} onClick={more}>
          Search older threads
        </button>
      )}
      {deleting !== undefined && (
        <Confirmation
          question={
            deleting.length === 1 && deleting[0] !== undefined
              ? `Delete thread “${threadName(deleting[0])}” with all its checkpoints?`
              : `Delete ${deleting.length} threads with all their checkpoints?`
          }
          action="Delete"
          onConfirm={() => removing.remove(deleting.map(({ thread_id }) => thread_id))}
          onClose={() => setDeleting(undefined)}
        />
      )}
    </div>
  );
};
