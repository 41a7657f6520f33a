import { useId, useState } from "react";
import { LongText } from "./long-text.tsx";
import styles from "./json.module.css";

/** A list in a state may have thousands of items. */
const SHOWN_FIRST = 100;
const CHARACTERS_SHOWN = 2_000;

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

const Scalar = ({ value }: { value: unknown }) => (
  <LongText text={JSON.stringify(value) ?? "undefined"} characters={CHARACTERS_SHOWN}>
    {(text) => <code className={styles[typeof value]}>{text}</code>}
  </LongText>
);

const summaryOf = (value: object): string => {
  if (Array.isArray(value)) return value.length === 1 ? "1 item" : `${value.length} items`;
  const keys = Object.keys(value);
  const names = keys.slice(0, 4).join(", ");
  return keys.length === 0 ? "empty" : keys.length > 4 ? `${names}, …` : names;
};

const Branch = ({ name, value, depth }: { name: string | undefined; value: object; depth: number }) => {
  const [isOpen, setIsOpen] = useState(depth > 0);
  const [shown, setShown] = useState(SHOWN_FIRST);
  const entries = Object.entries(value);
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>
        {name !== undefined && <span className={styles.name}>{name}</span>}{" "}
        <span className="faint">{summaryOf(value)}</span>
      </summary>
      {isOpen && (
        <ul className={styles.children}>
          {entries.slice(0, shown).map(([key, child]) => (
            <li key={key}>
              <Node name={key} value={child} depth={depth - 1} />
            </li>
          ))}
          {entries.length > shown && (
            <li>
              <button type="button" className="plain" onClick={() => setShown(shown + SHOWN_FIRST)}>
                {entries.length - shown} more
              </button>
            </li>
          )}
        </ul>
      )}
    </details>
  );
};

const Node = ({ name, value, depth }: { name?: string; value: unknown; depth: number }) =>
  isContainer(value) && Object.keys(value).length > 0 ? (
    <Branch name={name} value={value} depth={depth} />
  ) : (
    <span>
      {name !== undefined && <span className={styles.name}>{name}</span>}{" "}
      {isContainer(value) ? <code>{Array.isArray(value) ? "[]" : "{}"}</code> : <Scalar value={value} />}
    </span>
  );

/** `depth`: levels that are open at first. */
export const JsonView = ({ value, depth = 1 }: { value: unknown; depth?: number }) => (
  <div className={styles.view}>
    <Node value={value} depth={depth} />
  </div>
);

interface JsonEditorProps {
  label: string;
  initial: unknown;
  /** Undefined while the text is not valid JSON. */
  onChange(value: { json: unknown } | undefined): void;
  rows?: number;
  /** Whether an empty text means `undefined`. */
  mayBeEmpty?: boolean;
}

export const JsonEditor = ({ label, initial, onChange, rows = 8, mayBeEmpty = false }: JsonEditorProps) => {
  const [text, setText] = useState(() => JSON.stringify(initial, null, 2) ?? "");
  const [fault, setFault] = useState<string>();
  const id = useId();
  const change = (written: string): void => {
    setText(written);
    try {
      const json: unknown = mayBeEmpty && written.trim() === "" ? undefined : JSON.parse(written);
      setFault(undefined);
      onChange({ json });
    } catch (error) {
      setFault((error as Error).message);
      onChange(undefined);
    }
  };
  return (
    <div className="stack">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        className="code"
        rows={rows}
        spellCheck={false}
        value={text}
        aria-invalid={fault !== undefined}
        aria-describedby={`${id}-fault`}
        onChange={({ target }) => change(target.value)}
      />
      <p id={`${id}-fault`} role="status" className={styles.fault}>
        {fault}
      </p>
    </div>
  );
};
