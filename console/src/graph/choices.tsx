import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { assistantText, useAssistantNames } from "../parts/assistants.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { exactTime } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import styles from "./graph-page.module.css";

const THREADS_LISTED = 30;

interface Choice {
  assistant: string;
  thread: string | undefined;
}

interface ChoicesProps {
  assistantId: string | undefined;
  threadId: string | undefined;
  onChoose(choice: Choice): void;
}

export const Choices = ({ assistantId, threadId, onChoose }: ChoicesProps) => {
  const { client } = useConnection();
  const id = useId();
  const assistants = useAssistantNames();
  const threads = useQuery({
    // Another thread refetches the list, which may contain new threads.
    queryKey: ["threads", "of assistant", assistantId, threadId ?? null],
    queryFn: () =>
      client.threads.search({
        metadata: { assistant_id: assistantId },
        limit: THREADS_LISTED,
        sortBy: "updated_at",
        sortOrder: "desc",
        select: ["thread_id", "status", "updated_at"],
      }),
    enabled: assistantId !== undefined,
    placeholderData: (before, query) => (query?.queryKey[2] === assistantId ? before : undefined),
  });
  const known = assistants.data ?? [];
  const listed = threads.data ?? [];
  return (
    <>
      <ErrorNotice error={assistants.error ?? threads.error} />
      <span className={styles.choice}>
        <label htmlFor={`${id}assistant`}>Assistant</label>
        <select
          id={`${id}assistant`}
          value={assistantId ?? ""}
          onChange={({ target }) => onChoose({ assistant: target.value, thread: undefined })}
        >
          {!known.some(({ assistant_id }) => assistant_id === assistantId) && (
            <option value={assistantId ?? ""}>{assistants.isPending ? "" : (assistantId ?? "none")}</option>
          )}
          {known.map((one) => (
            <option key={one.assistant_id} value={one.assistant_id}>
              {assistantText(one)}
            </option>
          ))}
        </select>
      </span>
      <span className={styles.choice}>
        <label htmlFor={`${id}thread`}>Thread</label>
        <select
          id={`${id}thread`}
          value={threadId ?? ""}
          disabled={assistantId === undefined}
          onChange={({ target }) =>
            onChoose({ assistant: assistantId ?? "", thread: target.value === "" ? undefined : target.value })
          }
        >
          <option value="">none (graph only)</option>
          {threadId !== undefined && !listed.some(({ thread_id }) => thread_id === threadId) && (
            <option value={threadId}>{threadId}</option>
          )}
          {listed.map(({ thread_id, status, updated_at }) => (
            <option key={thread_id} value={thread_id}>
              …{thread_id.slice(-8)}, {status}, {exactTime(updated_at)}
            </option>
          ))}
        </select>
      </span>
    </>
  );
};
