import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { FaultNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { renewThread, titleOf, type ThreadRecord } from "./thread-record.ts";
import styles from "./playground.module.css";

/** What the thread is called; a click renames it. The name is the field `title` of its metadata. */
export const ThreadTitle = ({ record: { thread_id, metadata } }: { record: ThreadRecord }) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [written, setWritten] = useState<string>();
  const title = titleOf(metadata);
  const rename = useMutation({
    mutationFn: (name: string) => client.threads.update(thread_id, { metadata: { title: name } }),
    onSuccess: async () => {
      setWritten(undefined);
      await renewThread(queries, thread_id);
    },
  });
  if (written === undefined)
    return (
      <button
        type="button"
        className={`plain ${styles.title}`}
        title="Rename"
        aria-label={`Rename the thread ${title ?? thread_id}`}
        onClick={() => setWritten(title ?? "")}
      >
        {title ?? <code>{thread_id.slice(0, 8)}…</code>}
      </button>
    );
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    rename.mutate(written.trim());
  };
  return (
    <form className="row" onSubmit={submit}>
      <label>
        <span className="unseen">Name of the thread</span>
        <input
          autoFocus
          maxLength={200}
          value={written}
          placeholder="Name of the thread"
          onChange={({ target }) => setWritten(target.value)}
          onKeyDown={({ key }) => key === "Escape" && setWritten(undefined)}
        />
      </label>
      <button type="submit">Rename</button>
      <FaultNotice error={rename.error} />
    </form>
  );
};
