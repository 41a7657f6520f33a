import { useQueryClient } from "@tanstack/react-query";
import { ArrowDownUp, Inbox, ListFilter } from "lucide-react";
import { useEffect, useEffectEvent, useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { useIsWide } from "../design/use-is-wide.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { WAITING_KEY } from "../parts/waiting-threads.ts";
import { useOwnName } from "./assignee.tsx";
import { FilterChips } from "./filter-chips.tsx";
import { assigneesIn, matches, metadataOf, NO_FILTER, type InboxFilter } from "./filter.ts";
import { List } from "./list.tsx";
import { ThreadDetail, type Answered } from "./thread-detail.tsx";
import { dropFromList, useWaitingList, type Order, type WaitingThread } from "./waiting-list.ts";
import styles from "./inbox.module.css";

const NO_THREADS: readonly WaitingThread[] = [];
/** A phone shows the list first. */
const BOTH_FROM_REM = 48.01;

const scrollTo = (threadId: string): void =>
  document.querySelector(`[data-thread="${CSS.escape(threadId)}"]`)?.scrollIntoView({ block: "nearest" });

const placeOf = (threads: readonly WaitingThread[], threadId: string | undefined): number =>
  threads.findIndex(({ thread_id }) => thread_id === threadId);

/**
 * The thread after the given one, or before it.
 * @param place where the given one was, if somebody else answered it
 */
const neighbourOf = (
  threads: readonly WaitingThread[],
  threadId: string | undefined,
  step: 1 | -1,
  place: number,
): string | undefined => {
  const at = placeOf(threads, threadId);
  if (at !== -1) return threads[at + step]?.thread_id;
  return (threads[step === 1 ? place : place - 1] ?? threads.at(step === 1 ? -1 : 0))?.thread_id;
};

export default function InboxPage() {
  const { threadId } = useParams<{ threadId?: string }>();
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const [order, setOrder] = useState<Order>("asc");
  const [filter, setFilter] = useState<InboxFilter>(NO_FILTER);
  const [me, setMe] = useOwnName();
  const [answered, setAnswered] = useState<Answered>();
  /** How often Enter opened this thread. */
  const [entered, setEntered] = useState({ threadId: "", times: 0 });
  /** Of the selected thread in the list, even after it has left the list. */
  const [place, setPlace] = useState(0);
  const all = useWaitingList(order);
  const threads = all.data ?? NO_THREADS;
  // The server finds matching threads among those that are not read yet.
  const filtered = useWaitingList(order, all.hasNextPage ? metadataOf(filter, me) : {});
  // A server that encrypts the metadata refuses to search in it.
  const list = filtered.isError ? all : filtered;
  const found = list.data ?? NO_THREADS;
  const shown = found.filter((thread) => matches(thread, filter, me));

  const hasBoth = useIsWide(BOTH_FROM_REM);
  const first = shown[0]?.thread_id;
  const selectFirst = useEffectEvent(() => {
    if (threadId === undefined && first !== undefined && hasBoth)
      navigate(`/inbox/${first}`, { replace: true });
  });
  useEffect(() => selectFirst(), [threadId, first]);

  const at = placeOf(shown, threadId);
  if (at !== -1 && at !== place) setPlace(at);
  const next = neighbourOf(shown, threadId, 1, place);
  const previous = neighbourOf(shown, threadId, -1, place);
  const commands = useMemo<Command[]>(() => {
    const select = (id: string | undefined): void => {
      if (id === undefined) return;
      navigate(`/inbox/${id}`);
      scrollTo(id);
    };
    return [
      { label: "Next thread", group: "Inbox", keys: "j", run: () => select(next) },
      { label: "Previous thread", group: "Inbox", keys: "k", run: () => select(previous) },
    ];
  }, [navigate, next, previous]);
  useCommands(commands);

  const onAnswered = async (said: Answered): Promise<string> => {
    setAnswered(said);
    const following =
      neighbourOf(shown, said.threadId, 1, place) ?? neighbourOf(shown, said.threadId, -1, place);
    await dropFromList(queries, said.threadId);
    void queries.invalidateQueries({ queryKey: WAITING_KEY });
    return following === undefined ? "/inbox" : `/inbox/${following}`;
  };

  const isEmpty = all.isSuccess && threads.length === 0;
  return (
    <div className={styles.page} data-view={threadId === undefined ? "list" : "detail"}>
      <div className={styles.top}>
        <PageHead
          title="Inbox"
          actions={
            threads.length > 0 && (
              <button
                type="button"
                className={`plain small ${styles.order}`}
                onClick={() => setOrder(order === "asc" ? "desc" : "asc")}
              >
                <ArrowDownUp aria-hidden size={14} strokeWidth={1.75} />
                {order === "asc" ? "Longest waiting first" : "Newest first"}
              </button>
            )
          }
        >
          {threads.length > 0 && (
            <FilterChips
              threads={threads}
              hasMore={all.hasNextPage}
              me={me}
              filter={filter}
              onChange={setFilter}
            />
          )}
        </PageHead>
      </div>
      <p role="status" className={styles.answered}>
        {answered !== undefined && (
          <>
            {truncate(answered.words)} in{" "}
            <Link href={`/threads/${answered.threadId}`}>{truncate(answered.name)}</Link>
          </>
        )}
      </p>
      <div className={styles.list}>
        <ErrorNotice error={list.error} onRetry={() => void list.refetch()} />
        {list.isPending && <Skeleton lines={6} label="Loading the inbox" />}
        {isEmpty && (
          <EmptyState icon={Inbox} title="Nothing waits for you">
            Threads appear here when a graph stops to ask a person.
          </EmptyState>
        )}
        {threads.length > 0 && list.isSuccess && shown.length === 0 && (
          <EmptyState
            icon={ListFilter}
            title="No thread matches"
            action={
              <button type="button" onClick={() => setFilter(NO_FILTER)}>
                Show all
              </button>
            }
          >
            {list.hasNextPage ? "The threads read so far" : "All waiting threads"} are outside the filters.
          </EmptyState>
        )}
        {shown.length > 0 && (
          <List
            threads={shown}
            selected={threadId}
            onEnter={(id) => setEntered({ threadId: id, times: entered.times + 1 })}
          />
        )}
        {list.hasNextPage && (
          <button
            type="button"
            className={styles.more}
            disabled={list.isFetchingNextPage}
            onClick={() => void list.fetchNextPage()}
          >
            Show more
          </button>
        )}
      </div>
      {threadId !== undefined && (
        <ThreadDetail
          key={threadId}
          threadId={threadId}
          first={[...found, ...threads].find(({ thread_id }) => thread_id === threadId)?.extracted?.first}
          names={assigneesIn(threads)}
          me={me}
          onMe={setMe}
          entered={entered.threadId === threadId ? entered.times : 0}
          takesFocus={answered !== undefined}
          onAnswered={onAnswered}
        />
      )}
    </div>
  );
}
