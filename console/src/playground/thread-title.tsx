import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Copy } from "../parts/copy.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { renewThread, titleOf, useFirstWords, type ThreadRecord } from "./thread-record.ts";
import styles from "./playground.module.css";

const NO_NAME = "Unnamed";

/** The name is the field `title` of the metadata; without it the first message is shown. */
export const ThreadTitle = ({ record }: { record: ThreadRecord }) => {
  const { thread_id, metadata } = record;
  const { client } = useConnection();
  const queries = useQueryClient();
  const [written, setWritten] = useState<string>();
  const title = titleOf(metadata);
  const said = useFirstWords(
    thread_id,
    title === undefined,
    `${record.status} ${record.state_updated_at ?? ""}`,
  );
  const name = title ?? said;
  const rename = useMutation({
    mutationFn: (name: string) => client.threads.update(thread_id, { metadata: { title: name } }),
    onSuccess: async () => {
      setWritten(undefined);
      await renewThread(queries, thread_id);
    },
  });
  if (written === undefined)
    return (
      <span className={styles.named}>
        <button
          type="button"
          className={`plain ${styles.title}`}
          title={`${name ?? NO_NAME} – rename`}
          aria-label={`Rename the thread ${name ?? NO_NAME}`}
          onClick={() => setWritten(title ?? "")}
        >
          {name ?? <span className="faint">{NO_NAME}</span>}
        </button>
        <Copy text={thread_id} label={`Copy id ${thread_id}`}>
          <span className="faint">Copy id</span>
        </Copy>
      </span>
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
      <ErrorNotice error={rename.error} />
    </form>
  );
};
