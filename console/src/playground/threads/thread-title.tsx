import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactNode } from "react";
import { ErrorNotice } from "../../parts/notice.tsx";
import { useConnection } from "../../server/connection.tsx";
import { titleOf } from "../../parts/thread-name.ts";
import { renewThread, useFirstWords, type ThreadRecord } from "./thread-record.ts";
import styles from "./thread-title.module.css";

interface ThreadTitleProps {
  record: ThreadRecord;
  isEditing: boolean;
  onEdit(isEditing: boolean): void;
}

/** The name is the field `title` of the metadata; without it the first message is shown. */
export const ThreadTitle = ({ record, isEditing, onEdit }: ThreadTitleProps) => {
  const { thread_id, metadata } = record;
  const { client } = useConnection();
  const queries = useQueryClient();
  const title = titleOf(metadata);
  const said = useFirstWords(
    thread_id,
    title === undefined,
    `${record.status} ${record.state_updated_at ?? ""}`,
  );
  const name = title ?? (said === undefined ? "" : (said ?? "Unnamed"));
  const rename = useMutation({
    mutationFn: (written: string) => client.threads.update(thread_id, { metadata: { title: written } }),
    onSuccess: async () => {
      onEdit(false);
      await renewThread(queries, thread_id);
    },
  });
  if (isEditing)
    return (
      <NameForm
        initial={title ?? ""}
        error={rename.error}
        onSubmit={(written) => rename.mutate(written)}
        onCancel={() => onEdit(false)}
      />
    );
  return (
    <h1 className={styles.title}>
      <button
        type="button"
        className="plain"
        title={`${name} – rename`}
        aria-label={`Rename the thread ${name}`}
        onClick={() => onEdit(true)}
      >
        <span>{name}</span>
      </button>
    </h1>
  );
};

interface NameFormProps {
  initial: string;
  error: unknown;
  onSubmit(name: string): void;
  onCancel(): void;
}

const NameForm = ({ initial, error, onSubmit, onCancel }: NameFormProps) => {
  const [written, setWritten] = useState(initial);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit(written.trim());
  };
  return (
    <form className={styles.rename} onSubmit={submit}>
      <label>
        <span className="unseen">Name of the thread</span>
        <input
          autoFocus
          maxLength={200}
          value={written}
          placeholder="Name of the thread"
          onChange={({ target }) => setWritten(target.value)}
          onKeyDown={({ key }) => key === "Escape" && onCancel()}
        />
      </label>
      <button type="submit">Rename</button>
      <ErrorNotice error={error} />
    </form>
  );
};

/** The title of a new or a missing thread, which cannot be renamed. */
export const PlainTitle = ({ children }: { children: ReactNode }) => (
  <h1 className={styles.title}>{children}</h1>
);
