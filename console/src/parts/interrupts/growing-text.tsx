import { useState } from "react";
import styles from "./interrupts.module.css";

const ROWS_AT_MOST = 12;
/** The layout of a megabyte in an editor blocks the page for seconds, at each key. */
const CHARACTERS_AT_ONCE = 50_000;
const CHARACTERS_SHOWN = 2_000;

interface GrowingTextProps {
  id: string;
  text: string;
  rows?: number;
  /** Shows only the beginning of a very long text until a person edits it. */
  isOnDemand?: boolean;
  onChange(text: string): void;
}

/** An editor as high as its text, within bounds. */
export const GrowingText = ({ id, text, rows = 2, isOnDemand = false, onChange }: GrowingTextProps) => {
  const [isOpen, setIsOpen] = useState(!isOnDemand || text.length <= CHARACTERS_AT_ONCE);
  if (!isOpen)
    return (
      <>
        <pre className={styles.beginning} tabIndex={0}>{`${text.slice(0, CHARACTERS_SHOWN)}…`}</pre>
        <div>
          <button id={id} type="button" className="small" onClick={() => setIsOpen(true)}>
            Edit all {text.length.toLocaleString("en")} characters
          </button>
        </div>
      </>
    );
  return (
    <textarea
      id={id}
      className={styles.growing}
      // For browsers without `field-sizing`.
      rows={Math.min(ROWS_AT_MOST, Math.max(rows, text.split("\n", ROWS_AT_MOST).length))}
      value={text}
      onChange={({ target }) => onChange(target.value)}
    />
  );
};
