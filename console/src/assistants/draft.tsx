import type { Config } from "@langchain/langgraph-sdk";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { useSchemas } from "../parts/assistants.ts";
import { JsonEditor } from "../parts/json.tsx";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { UNTOUCHED, ValueEditor, type Validity } from "../parts/value-editor.tsx";
import styles from "./assistants.module.css";

export interface AssistantDraft {
  name: string;
  description: string;
  context: unknown;
  config: Config;
  metadata: Record<string, unknown>;
}

interface DraftFormProps {
  graphId: string;
  initial: AssistantDraft;
  action: string;
  isBusy: boolean;
  error: unknown;
  onSubmit(draft: AssistantDraft): void;
  children?: ReactNode;
}

/** Set `key` to the graph id. */
export const DraftForm = ({
  graphId,
  initial,
  action,
  isBusy,
  error,
  onSubmit,
  children,
}: DraftFormProps) => {
  const [draft, setDraft] = useState(initial);
  const [validity, setValidity] = useState<Validity>(UNTOUCHED);
  const [notJson, setNotJson] = useState<readonly string[]>([]);
  const schemas = useSchemas(graphId);
  const id = useId();
  const change = (part: Partial<AssistantDraft>): void => setDraft((current) => ({ ...current, ...part }));
  const changeJson = (name: "config" | "metadata") => (written: { json: unknown } | undefined) => {
    setNotJson((names) => [
      ...names.filter((each) => each !== name),
      ...(written === undefined ? [name] : []),
    ]);
    if (written !== undefined) change({ [name]: written.json });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit(draft);
  };
  const canSubmit = validity.isJson && notJson.length === 0 && !isBusy;
  return (
    <form className="stack" onSubmit={submit}>
      {children}
      <div className={styles.field}>
        <label htmlFor={`${id}name`}>Name</label>
        <input
          id={`${id}name`}
          required
          autoComplete="off"
          value={draft.name}
          onChange={({ target }) => change({ name: target.value })}
        />
      </div>
      <div className={styles.field}>
        <label htmlFor={`${id}description`}>Description</label>
        <textarea
          id={`${id}description`}
          rows={2}
          value={draft.description}
          onChange={({ target }) => change({ description: target.value })}
        />
      </div>
      <section className="stack" aria-labelledby={`${id}context`}>
        <h3 id={`${id}context`}>Context</h3>
        <ErrorNotice error={schemas.error} onRetry={() => void schemas.refetch()} />
        <ReadingNotice schemas={schemas.data} />
        {!schemas.isPending && (
          <ValueEditor
            label="Context"
            // Older graphs declare it as configurable.
            schema={schemas.data?.context_schema ?? schemas.data?.config_schema ?? null}
            value={draft.context}
            onChange={(context, next) => {
              change({ context });
              setValidity(next);
            }}
          />
        )}
      </section>
      <details>
        <summary>Config and metadata</summary>
        <div className="stack">
          <JsonEditor
            label="Config (JSON)"
            rows={4}
            initial={initial.config}
            onChange={changeJson("config")}
          />
          <JsonEditor
            label="Metadata (JSON)"
            rows={4}
            initial={initial.metadata}
            onChange={changeJson("metadata")}
          />
        </div>
      </details>
      <ErrorNotice error={error} />
      <div className={`row ${styles.save}`}>
        <button type="submit" className="primary" disabled={!canSubmit}>
          {action}
        </button>
        {validity.isJson && !validity.valid && (
          <span className="faint">The context does not match its schema. You can still save it.</span>
        )}
      </div>
    </form>
  );
};
