import { ariaDescribedByIds, type FieldProps, type RegistryFieldsType, type RJSFSchema } from "@rjsf/utils";
import { useEffect, useEffectEvent } from "react";
import { JsonEditor } from "../json.tsx";
import { isObject } from "../is-object.ts";
import { CHOICES_FIELD, JSON_FIELD, MESSAGES_FIELD } from "./kinds.ts";
import styles from "./schema-form.module.css";

export interface FormContext {
  onWritten(id: string, isJson: boolean): void;
}

/** An empty text removes the value. */
const JsonField = ({ schema, name, formData, onChange, fieldPathId, registry }: FieldProps) => {
  const { onWritten } = registry.formContext as FormContext;
  const id = fieldPathId.$id;
  const forget = useEffectEvent((field: string) => onWritten(field, true));
  // A removed field must not keep the form invalid.
  useEffect(() => () => forget(id), [id]);
  const reason = schema["x-reason"] as string | undefined;
  const fallback = schema["x-default"] as string | undefined;
  return (
    <div className={`${styles.field} ${styles.json}`}>
      <JsonEditor
        label={`${schema.title ?? name} (JSON)`}
        initial={formData}
        rows={3}
        mayBeEmpty
        onChange={(written) => {
          onWritten(id, written !== undefined);
          if (written !== undefined) onChange(written.json, fieldPathId.path);
        }}
      />
      {schema.description !== undefined && <p className={styles.hint}>{schema.description}</p>}
      {fallback !== undefined && (
        <p className={styles.hint}>
          Default: <code>{fallback}</code>
        </p>
      )}
      {reason !== undefined && <p className={styles.hint}>Edit as JSON: {reason}.</p>}
    </div>
  );
};

const ROLES = ["user", "assistant", "system", "tool"] as const;
const ROLE_OF_TYPE: ReadonlyMap<string, string> = new Map([
  ["human", "user"],
  ["ai", "assistant"],
]);
const TYPE_OF_ROLE: ReadonlyMap<string, string> = new Map([
  ["user", "human"],
  ["assistant", "ai"],
]);

type Message = Record<string, unknown>;

const roleOf = ({ role, type }: Message): string => {
  const name = typeof role === "string" ? role : typeof type === "string" ? type : "user";
  return ROLE_OF_TYPE.get(name) ?? name;
};

/** A message keeps its own field for the role: `role` or `type`. */
const withRole = (message: Message, role: string): Message =>
  message["role"] === undefined && message["type"] !== undefined
    ? { ...message, type: TYPE_OF_ROLE.get(role) ?? role }
    : { ...message, role };

const MessagesField = (props: FieldProps) => {
  const { schema, name, formData, onChange, fieldPathId, required } = props;
  const title = schema.title ?? name;
  const set = (messages: unknown[]): void =>
    onChange(messages.length === 0 && !required ? undefined : messages, fieldPathId.path);
  const messages: unknown[] = Array.isArray(formData) ? formData : [];
  const isPlain = (message: unknown): message is Message =>
    isObject(message) && typeof message["content"] === "string";
  if ((formData !== undefined && !Array.isArray(formData)) || !messages.every(isPlain)) {
    return <JsonField {...props} schema={{ ...schema, "x-reason": "it is not only plain text" }} />;
  }
  const change = (index: number, message: Message): void => set(messages.with(index, message));
  return (
    <fieldset className={styles.group}>
      <legend>{title}</legend>
      {messages.map((message, index) => {
        const role = roleOf(message);
        return (
          <div key={index} className={styles.message} role="group" aria-label={`Message ${index + 1}`}>
            <select
              aria-label="Role"
              value={role}
              onChange={({ target }) => change(index, withRole(message, target.value))}
            >
              {[...new Set([...ROLES, role])].map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
            <textarea
              aria-label="Text"
              className={styles.text}
              rows={2}
              value={String(message["content"])}
              onChange={({ target }) => change(index, { ...message, content: target.value })}
            />
            <button
              type="button"
              className="plain"
              aria-label={`Remove message ${index + 1}`}
              onClick={() => set(messages.toSpliced(index, 1))}
            >
              Remove
            </button>
          </div>
        );
      })}
      <div>
        <button type="button" onClick={() => set([...messages, { role: "user", content: "" }])}>
          Add a message
        </button>
      </div>
    </fieldset>
  );
};

/** No value and an empty list are different values. */
const ChoicesField = ({ schema, name, formData, onChange, fieldPathId, required }: FieldProps) => {
  const choices: readonly unknown[] = (schema.items as RJSFSchema).enum ?? [];
  const chosen: readonly unknown[] = Array.isArray(formData) ? formData : [];
  const id = fieldPathId.$id;
  const set = (value: unknown): void => onChange(value, fieldPathId.path);
  return (
    <div
      role="group"
      id={id}
      aria-label={schema.title ?? name}
      aria-describedby={ariaDescribedByIds(id)}
      className="row"
    >
      {choices.map((choice, index) => (
        <label key={index} className={styles.choice}>
          <input
            type="checkbox"
            checked={chosen.includes(choice)}
            onChange={({ target }) =>
              set(choices.filter((each) => (each === choice ? target.checked : chosen.includes(each))))
            }
          />{" "}
          {String(choice)}
        </label>
      ))}
      {formData === undefined && <span className="faint">No value.</span>}
      {formData !== undefined && !required && (
        <button type="button" className="plain" onClick={() => set(undefined)}>
          Leave out
        </button>
      )}
    </div>
  );
};

export const FIELDS: RegistryFieldsType = {
  [JSON_FIELD]: JsonField,
  [MESSAGES_FIELD]: MessagesField,
  [CHOICES_FIELD]: ChoicesField,
};
