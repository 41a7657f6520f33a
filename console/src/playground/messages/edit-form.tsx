import { useId, useState, type FormEvent, type KeyboardEvent } from "react";
import { keysText } from "../../parts/commands.tsx";
import styles from "./message.module.css";

interface EditFormProps {
  text: string;
  onSend(text: string): void;
  onCancel(): void;
}

export const EditForm = ({ text, onSend, onCancel }: EditFormProps) => {
  const [changed, setChanged] = useState(text);
  const id = useId();
  const isEmpty = changed.trim() === "";
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSend(changed);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const isSending = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (event.key !== "Escape" && !isSending) return;
    event.preventDefault();
    // Escape would also stop a run.
    event.stopPropagation();
    if (event.key === "Escape") onCancel();
    else if (!isEmpty) onSend(changed);
  };
  return (
    <form className={styles.edit} onSubmit={submit}>
      <label htmlFor={id} className="unseen">
        Edited message
      </label>
      <textarea
        id={id}
        rows={3}
        autoFocus
        className={styles.editText}
        value={changed}
        onChange={({ target }) => setChanged(target.value)}
        onKeyDown={onKeyDown}
      />
      <div className={styles.editButtons}>
        <span className={styles.hint}>{keysText("$mod+Enter")} sends</span>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="primary" disabled={isEmpty}>
          Send as a new branch
        </button>
      </div>
    </form>
  );
};
