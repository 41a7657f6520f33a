import { useId, useMemo, useState } from "react";
import { JsonEditor } from "../json.tsx";
import { LongText } from "../long-text.tsx";
import { GrowingText } from "./growing-text.tsx";
import { TextDifference } from "./text-difference.tsx";
import styles from "./interrupts.module.css";

interface ArgumentFieldProps {
  name: string;
  value: unknown;
  /** The value that the field shows first: a changed one, if the user has written one before. */
  written: unknown;
  isReadOnly: boolean;
  /** Undefined while the input is not a valid value. */
  onChange(value: unknown): void;
}

const CHARACTERS_SHOWN = 2_000;
/** The layout of a field of megabytes blocks the page. */
const EDITED_AT_MOST = 20_000;

export const ArgumentField = ({ name, value, written, isReadOnly, onChange }: ArgumentFieldProps) => {
  const [isEditing, setIsEditing] = useState(false);
  const length = useMemo(
    () => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).length,
    [value],
  );
  const isTooLong = !isReadOnly && !isEditing && length > EDITED_AT_MOST;
  if (!isReadOnly && !isTooLong)
    return <EditedField name={name} value={value} written={written} onChange={onChange} />;
  return (
    <>
      <ReadField name={name} value={value} />
      {isTooLong && (
        <div className="row">
          <button type="button" className="small" onClick={() => setIsEditing(true)}>
            {`Edit all ${length.toLocaleString("en")} characters of ${name}`}
          </button>
        </div>
      )}
    </>
  );
};

const ReadField = ({ name, value }: { name: string; value: unknown }) => (
  <div className={styles.field} role="group" aria-label={name}>
    <span className={styles.legend}>{name}</span>
    <LongText
      text={typeof value === "string" ? value : (JSON.stringify(value) ?? "")}
      characters={CHARACTERS_SHOWN}
    >
      {(shown) => <p className={styles.plain}>{typeof value === "string" ? shown : <code>{shown}</code>}</p>}
    </LongText>
  </div>
);

/** A longer text, or one of several lines, has an editor that grows. */
const LINE_CHARACTERS = 80;

const EditedField = ({ name, value, written, onChange }: Omit<ArgumentFieldProps, "isReadOnly">) => {
  const id = useId();
  const [text, setText] = useState(() => String(written));
  if (typeof value === "boolean")
    return (
      <label className="row">
        <input
          type="checkbox"
          defaultChecked={written === true}
          onChange={({ target }) => onChange(target.checked)}
        />
        {name}
      </label>
    );
  if (typeof value === "number") {
    const isNumber = text.trim() !== "" && Number.isFinite(Number(text));
    return (
      <div className={styles.field}>
        <label htmlFor={id}>{name}</label>
        <input
          id={id}
          className={styles.number}
          inputMode="decimal"
          autoComplete="off"
          value={text}
          aria-invalid={!isNumber}
          aria-describedby={`${id}-fault`}
          onChange={({ target }) => {
            setText(target.value);
            const number = target.value.trim() === "" ? NaN : Number(target.value);
            onChange(Number.isFinite(number) ? number : undefined);
          }}
        />
        <p id={`${id}-fault`} role="status" className={styles.fault}>
          {isNumber ? "" : "This is not a number."}
        </p>
      </div>
    );
  }
  if (typeof value !== "string")
    return (
      <JsonEditor
        label={name}
        initial={written ?? null}
        rows={3}
        onChange={(parsed) => onChange(parsed?.json)}
      />
    );
  const change = (changed: string): void => {
    setText(changed);
    onChange(changed);
  };
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{name}</label>
      {value.length <= LINE_CHARACTERS && !value.includes("\n") ? (
        <input id={id} autoComplete="off" value={text} onChange={({ target }) => change(target.value)} />
      ) : (
        <GrowingText id={id} text={text} onChange={change} />
      )}
      <TextDifference name={name} before={value} after={text} />
    </div>
  );
};
