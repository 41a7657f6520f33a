import { useId, useState, type FormEvent, type ReactNode } from "react";
import { Dialog } from "../design/dialog.tsx";
import { useSchemas } from "../parts/assistants.ts";
import { JsonEditor } from "../parts/json.tsx";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { localTimeOf } from "../parts/time.tsx";
import { ValueEditor, type Validity } from "../parts/value-editor.tsx";
import type { Cron } from "./cron.ts";
import { scheduleWords } from "./schedule-words.ts";
import styles from "./crons.module.css";

export type CronFields = Record<string, unknown>;

interface CronFormProps {
  cron: Cron | undefined;
  assistants: readonly { assistant_id: string; name: string }[];
  /** The form stays open with the error if `onSave` rejects. `threadId`: only of a new cron. */
  onSave(fields: CronFields, threadId: string | undefined): Promise<unknown>;
  onClose(): void;
}

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

const Field = ({ label, hint, children }: FieldProps) => {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-hint` })}
      <span id={`${id}-hint`} className="faint">
        {hint}
      </span>
    </div>
  );
};
interface FieldProps {
  label: string;
  hint?: ReactNode;
  children(attributes: { id: string; "aria-describedby": string }): ReactNode;
}

const JSON_FIELDS = [
  ["config", "Config"],
  ["context", "Context"],
  ["metadata", "Metadata"],
] as const;
type JsonField = (typeof JSON_FIELDS)[number][0] | "input";

const initialOf = (cron: Cron | undefined, name: JsonField): unknown =>
  (name === "metadata" ? cron?.metadata : cron?.payload[name]) ?? {};

interface InputFieldProps {
  assistantId: string;
  initial: unknown;
  /** Undefined while the text is not valid JSON. */
  onChange(value: { json: unknown } | undefined): void;
}

const InputField = ({ assistantId, initial, onChange }: InputFieldProps) => {
  const schemas = useSchemas(assistantId === "" ? undefined : assistantId);
  const [written, setWritten] = useState<{ value: unknown; validity: Validity }>();
  if (schemas.isLoading) return <p className="faint">Loading…</p>;
  const schema = schemas.data?.input_schema;
  return (
    <section className="stack" aria-label="Input">
      <h3>Input</h3>
      <ReadingNotice schemas={schemas.data} />
      <ValueEditor
        label="Input"
        schema={schema ?? {}}
        value={written === undefined ? initial : written.value}
        onChange={(value, validity) => {
          setWritten({ value, validity });
          onChange(validity.isJson ? { json: value } : undefined);
        }}
      />
      {written?.validity.isJson === true && !written.validity.valid && (
        <p className="faint">The input does not match the schema of the graph. It is saved anyway.</p>
      )}
    </section>
  );
};

export const CronForm = ({ cron, assistants, onSave, onClose }: CronFormProps) => {
  const [assistant, setAssistant] = useState(cron?.assistant_id ?? assistants[0]?.assistant_id ?? "");
  const [schedule, setSchedule] = useState(cron?.schedule ?? "0 9 * * *");
  const [timezone, setTimezone] = useState(cron?.timezone ?? "UTC");
  const [thread, setThread] = useState(cron?.thread_id ?? "");
  const [completed, setCompleted] = useState(cron?.on_run_completed ?? "delete");
  const [end, setEnd] = useState(localTimeOf(cron?.end_time ?? null));
  const [json, setJson] = useState<Partial<Record<JsonField, { json: unknown } | undefined>>>({});
  const [fault, setFault] = useState<unknown>();
  const [isSaving, setIsSaving] = useState(false);
  const zonesId = useId();
  const isUnreadable = Object.values(json).some((value) => value === undefined);
  const isThreadless = thread === "";

  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setIsSaving(true);
    setFault(undefined);
    const written = Object.fromEntries(Object.entries(json).map(([name, value]) => [name, value?.json]));
    const fields = {
      schedule,
      timezone: timezone === "" ? "UTC" : timezone,
      ...written,
      ...(isThreadless && { on_run_completed: completed }),
      // The field has no seconds.
      ...(end !== localTimeOf(cron?.end_time ?? null) && {
        end_time: end === "" ? null : new Date(end).toISOString(),
      }),
      ...(cron === undefined && { assistant_id: assistant, input: json.input?.json ?? {} }),
    };
    try {
      await onSave(fields, isThreadless ? undefined : thread);
      onClose();
    } catch (error) {
      setFault(error);
      setIsSaving(false);
    }
  };

  return (
    <Dialog title={cron === undefined ? "New cron" : "Edit cron"} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void save(event)}>
        <div className={styles.fields}>
          <Field
            label="Schedule"
            hint={scheduleWords(schedule) ?? "Minute, hour, day of month, month, day of week"}
          >
            {(attributes) => (
              <input
                {...attributes}
                required
                spellCheck={false}
                value={schedule}
                onChange={({ target }) => setSchedule(target.value)}
              />
            )}
          </Field>
          <Field label="Time zone">
            {(attributes) => (
              <input
                {...attributes}
                list={zonesId}
                spellCheck={false}
                value={timezone}
                onChange={({ target }) => setTimezone(target.value)}
              />
            )}
          </Field>
          <datalist id={zonesId}>
            {ZONES.map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
          {cron === undefined && (
            <Field label="Assistant">
              {(attributes) => (
                <select
                  {...attributes}
                  required
                  value={assistant}
                  onChange={({ target }) => {
                    setAssistant(target.value);
                    setJson(({ input: _, ...others }) => others);
                  }}
                >
                  {assistants.map(({ assistant_id, name }) => (
                    <option key={assistant_id} value={assistant_id}>
                      {name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          {cron === undefined && (
            <Field label="Thread" hint="A thread id. If empty, each run gets its own thread.">
              {(attributes) => (
                <input
                  {...attributes}
                  spellCheck={false}
                  value={thread}
                  onChange={({ target }) => setThread(target.value.trim())}
                />
              )}
            </Field>
          )}
          {isThreadless && (
            <Field label="When a run ends, its thread">
              {(attributes) => (
                <select
                  {...attributes}
                  value={completed}
                  onChange={({ target }) => setCompleted(target.value as "delete" | "keep")}
                >
                  <option value="delete">is deleted</option>
                  <option value="keep">is kept</option>
                </select>
              )}
            </Field>
          )}
          <Field label="End time" hint="No run starts at or after this time.">
            {(attributes) => (
              <input
                {...attributes}
                type="datetime-local"
                value={end}
                onChange={({ target }) => setEnd(target.value)}
              />
            )}
          </Field>
        </div>
        <InputField
          key={assistant}
          assistantId={assistant}
          initial={initialOf(cron, "input")}
          onChange={(value) => setJson((before) => ({ ...before, input: value }))}
        />
        {JSON_FIELDS.map(([name, label]) => (
          <details key={name}>
            <summary>{label}</summary>
            <JsonEditor
              label={label}
              initial={initialOf(cron, name)}
              rows={4}
              onChange={(value) => setJson((before) => ({ ...before, [name]: value }))}
            />
          </details>
        ))}
        <ErrorNotice error={fault} />
        <div className="row">
          <button type="submit" className="primary" disabled={isSaving || isUnreadable}>
            Save
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
};
