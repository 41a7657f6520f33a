import { contentText } from "../parts/message-text.ts";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { ErrorNotice } from "../parts/notice.tsx";
import { refetchEvery } from "../server/refetch.ts";
import { statusOf } from "../server/api-error.ts";
import { useConnection } from "../server/connection.tsx";
import type { HeldInput } from "./composer/held-messages.ts";
import { renewThread } from "./threads/thread-record.ts";
import styles from "./queued-runs.module.css";

/** Each shown run is read once for its input. */
const SHOWN_AT_MOST = 20;
const LISTED_AT_MOST = 1_000;
const POLL_MS = 2_000;
const TEXT_CHARACTERS = 200;

interface WaitingRun {
  run_id: string;
  created_at: string;
}

interface GivenRun {
  kwargs?: { input?: unknown; command?: unknown } | null;
}

const lineOf = ({ kwargs }: GivenRun): string => lineOfInput(kwargs?.input, kwargs?.command);

const lineOfInput = (given: unknown, command?: unknown): string => {
  const input = given as { messages?: unknown } | null | undefined;
  const messages = Array.isArray(input?.messages) ? (input.messages as unknown[]) : [];
  const last = messages.at(-1) as { content?: unknown } | null | undefined;
  const said = contentText(last?.content).trim();
  if (said !== "") return said.slice(0, TEXT_CHARACTERS);
  if (messages.length > 0) return "A message without text";
  const other = input ?? command;
  return other == null
    ? "Continues with the next nodes"
    : (JSON.stringify(other) ?? "").slice(0, TEXT_CHARACTERS);
};

/** Oldest first, which is the order of execution. */
const inOrder = (runs: readonly WaitingRun[]): WaitingRun[] =>
  [...runs].sort((one, other) =>
    `${one.created_at} ${one.run_id}` < `${other.created_at} ${other.run_id}` ? -1 : 1,
  );

/** Runs of all clients that wait on the server. */
export const QueuedRuns = ({ threadId }: { threadId: string }) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  const waiting = useQuery({
    queryKey: ["threads", "queued", threadId],
    queryFn: () =>
      request<WaitingRun[]>(
        "GET",
        `/threads/${threadId}/runs?status=pending&limit=${LISTED_AT_MOST}&select=run_id&select=created_at`,
      ),
    refetchInterval: refetchEvery(POLL_MS),
    staleTime: 0,
  });
  const runs = inOrder(waiting.data ?? []);
  const shown = runs.slice(0, SHOWN_AT_MOST);
  const lines = useQueries({
    queries: shown.map(({ run_id: runId }) => ({
      queryKey: ["threads", "queued-line", threadId, runId],
      queryFn: async () => lineOf(await request<GivenRun>("GET", `/threads/${threadId}/runs/${runId}`)),
      staleTime: Infinity,
    })),
    combine: (answers) => answers.map(({ data, isError }) => data ?? (isError ? "?" : "…")),
  });
  const withdraw = useMutation({
    // A run that has started in the meantime must not be cancelled.
    mutationFn: async (runId: string) => {
      await request("POST", "/runs/cancel", {
        thread_id: threadId,
        run_ids: [runId],
        status: "pending",
      }).catch((error: unknown) => {
        if (statusOf(error) !== 404) throw error;
        throw new Error("This message no longer waits: its run has started, or it was withdrawn.");
      });
    },
    onSettled: () => renewThread(queries, threadId),
  });
  if (runs.length === 0) return <ErrorNotice error={waiting.error ?? withdraw.error} />;
  return (
    <section className={styles.queue} aria-label="Queued messages">
      <p role="status" className={styles.count}>
        {runs.length === 1 ? "1 message waits" : `${runs.length} messages wait`} for the run to end
      </p>
      <ol>
        {shown.map(({ run_id: runId }, index) => (
          <li key={runId}>
            <span className={styles.line} title={lines[index]}>
              {lines[index]}
            </span>
            <button
              type="button"
              className="plain small"
              aria-label={`Withdraw “${lines[index] ?? ""}”`}
              disabled={withdraw.isPending && withdraw.variables === runId}
              onClick={() => withdraw.mutate(runId)}
            >
              Withdraw
            </button>
          </li>
        ))}
      </ol>
      {runs.length > shown.length && (
        <p className="faint">
          and {runs.length - shown.length}
          {runs.length === LISTED_AT_MOST ? " or more" : ""} behind them
        </p>
      )}
      <ErrorNotice error={withdraw.error} />
    </section>
  );
};

interface HeldMessagesProps {
  held: readonly HeldInput[];
  onSend(one: HeldInput): void;
  onWithdraw(one: HeldInput): void;
}

/** Queued messages that the user's *Stop* kept from starting. */
export const HeldMessages = ({ held, onSend, onWithdraw }: HeldMessagesProps) =>
  held.length === 0 ? null : (
    <section className={styles.queue} aria-label="Messages not sent">
      <p role="status" className={styles.count}>
        You stopped the run, so {held.length === 1 ? "this message has" : "these messages have"} not started
      </p>
      <ol>
        {held.slice(0, SHOWN_AT_MOST).map((one) => {
          const line = lineOfInput(one.input);
          return (
            <li key={one.id}>
              <span className={styles.line} title={line}>
                {line}
              </span>
              <button
                type="button"
                className="small"
                aria-label={`Send “${line}”`}
                onClick={() => onSend(one)}
              >
                Send
              </button>
              <button
                type="button"
                className="plain small"
                aria-label={`Withdraw “${line}”`}
                onClick={() => onWithdraw(one)}
              >
                Withdraw
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
