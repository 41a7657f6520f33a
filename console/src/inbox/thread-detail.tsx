import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ArrowLeft, FileQuestion } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Link, useLocation } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { IconButton } from "../design/icon-button.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import {
  Breakpoint,
  focusCard,
  interruptsOf,
  pressAccept,
  QuestionCards,
} from "../parts/interrupts/interrupts.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { threadName } from "../parts/thread-name.ts";
import { Time } from "../parts/time.tsx";
import { useNavigate } from "../parts/use-navigate.ts";
import { WAITING_KEY } from "../parts/waiting-threads.ts";
import { useConnection } from "../server/connection.tsx";
import { sendAnswer } from "./answer.ts";
import { Assignee } from "./assignee.tsx";
import { Extract } from "./extract.tsx";
import { useQuestion, useSelectedThread, type SelectedThread, type StoredQuestion } from "./question.ts";
import { assigneeOf, graphOf } from "./waiting-list.ts";
import styles from "./inbox.module.css";

/** A key that was meant for the thread before must not accept what nobody has read. */
const READ_AT_LEAST_MS = 500;

export interface Answered {
  threadId: string;
  name: string;
  words: string;
}

interface ThreadDetailProps {
  threadId: string;
  /** The first message, if the list has it. */
  first: unknown;
  names: readonly string[];
  me: string;
  onMe(name: string): void;
  /** Above 0: the focus goes to the question, again with each higher number. */
  entered: number;
  /** Takes the focus that the thread before has lost. */
  takesFocus: boolean;
  /** @returns the address of the next thread */
  onAnswered(answered: Answered): Promise<string>;
}

const leaveText = (event: KeyboardEvent<HTMLElement>): void => {
  const { currentTarget: detail, target, key } = event;
  if (key !== "Escape" || !(target instanceof HTMLElement) || !detail.contains(target)) return;
  if (target.matches("input, textarea")) detail.focus();
};

export const ThreadDetail = (props: ThreadDetailProps) => {
  const { threadId, takesFocus } = props;
  const detail = useRef<HTMLElement>(null);
  useEffect(() => {
    if (takesFocus && document.activeElement === document.body) detail.current?.focus();
  }, [takesFocus]);
  const thread = useSelectedThread(threadId);
  const { data } = thread;
  const isWaiting = data?.status === "interrupted";
  const stored = useQuestion(threadId, isWaiting ? data.state_updated_at : undefined);
  /** The written text stays readable after another person has answered. */
  const [held, setHeld] = useState<StoredQuestion>();
  if (isWaiting && stored.data !== undefined && stored.data !== held) setHeld(stored.data);
  const error = thread.error ?? stored.error;
  return (
    <section
      ref={detail}
      className={styles.detail}
      aria-label="Selected thread"
      tabIndex={0}
      onKeyDown={leaveText}
    >
      {data === null ? (
        <EmptyState
          icon={FileQuestion}
          title="This thread does not exist"
          action={<Link href="/inbox">Show the inbox</Link>}
        >
          Somebody has deleted thread {truncate(threadId)}, or it never existed.
        </EmptyState>
      ) : (
        <>
          {data !== undefined && <Head {...props} thread={data} first={held?.first ?? props.first} />}
          <ErrorNotice
            error={error}
            onRetry={() => void Promise.all([thread.refetch(), isWaiting && stored.refetch()])}
          />
          {error === null && (data === undefined || (isWaiting && held === undefined)) && (
            <Skeleton lines={5} label="Loading the question" />
          )}
          {data !== undefined && !isWaiting && (
            <p role="status" className="notice">
              This thread no longer waits for an answer: its status is {data.status}.
            </p>
          )}
          {data !== undefined && held !== undefined && (
            <Answer key={held.revision} {...props} thread={data} question={held} isClosed={!isWaiting} />
          )}
        </>
      )}
    </section>
  );
};

const Head = ({
  threadId,
  names,
  me,
  onMe,
  thread,
  first,
}: ThreadDetailProps & { thread: SelectedThread }) => {
  const [, navigate] = useLocation();
  const name = threadName({ ...thread, extracted: { first } });
  return (
    <header className={styles.about}>
      <div className={styles.title}>
        <IconButton
          label="Back to the list"
          icon={ArrowLeft}
          className={styles.back}
          onClick={() => navigate("/inbox")}
        />
        <h2 title={truncate(name)}>{truncate(name)}</h2>
      </div>
      <div className={styles.facts}>
        <span className={styles.graph}>{truncate(graphOf(thread) ?? "unknown graph")}</span>
        <span>
          {thread.status} <Time iso={thread.state_updated_at} />
        </span>
        <Assignee
          key={threadId}
          threadId={threadId}
          assignee={assigneeOf(thread)}
          names={names}
          me={me}
          onMe={onMe}
        />
        <Link href={`/threads/${threadId}`} aria-keyshortcuts="O">
          Open thread
        </Link>
      </div>
    </header>
  );
};

interface AnswerProps extends ThreadDetailProps {
  thread: SelectedThread;
  question: StoredQuestion;
  isClosed: boolean;
}

const Answer = ({ thread, question, isClosed, entered, onAnswered }: AnswerProps) => {
  const connection = useConnection();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const place = useRef<HTMLDivElement>(null);
  const { thread_id: threadId } = thread;
  const shownAt = useRef(Infinity);
  useEffect(() => {
    shownAt.current = performance.now();
    if (entered > 0) focusCard(place.current, "card");
  }, [entered]);
  const send = useMutation({
    mutationFn: ({ responses }: { responses: Record<string, unknown> | undefined; words: string }) =>
      sendAnswer(connection, { ...thread, state_updated_at: question.revision }, responses),
    onSuccess: async (_, { words }) => {
      const name = threadName({ ...thread, extracted: { first: question.first } });
      navigate(await onAnswered({ threadId, name, words }));
    },
    onError: () => queries.invalidateQueries({ queryKey: WAITING_KEY }),
  });
  const commands = useMemo<Command[]>(
    () => [
      {
        label: "Accept or approve",
        group: "Inbox",
        keys: "a",
        isOnce: true,
        run: () => {
          if (performance.now() - shownAt.current >= READ_AT_LEAST_MS) pressAccept(place.current);
        },
      },
      { label: "Write an answer", group: "Inbox", keys: "r", run: () => focusCard(place.current, "answer") },
      {
        label: "Edit the arguments",
        group: "Inbox",
        keys: "e",
        run: () => focusCard(place.current, "argument"),
      },
      { label: "Open the thread", group: "Inbox", keys: "o", run: () => navigate(`/threads/${threadId}`) },
    ],
    [navigate, threadId],
  );
  useCommands(commands);
  const interrupts = useMemo(
    () => interruptsOf({ status: "interrupted", interrupts: question.interrupts }),
    [question],
  );
  return (
    <>
      <Extract messages={question.messages} />
      <ErrorNotice error={send.error} />
      <div ref={place}>
        {interrupts.length > 0 ? (
          <QuestionCards
            interrupts={interrupts}
            name={`${threadId} ${question.revision}`}
            isClosed={isClosed}
            showsKeys
            onAnswer={(responses, words) => send.mutateAsync({ responses, words })}
          />
        ) : (
          !isClosed && (
            <Breakpoint
              next={question.next}
              onContinue={() => send.mutateAsync({ responses: undefined, words: "Continued" })}
            />
          )
        )}
      </div>
    </>
  );
};
