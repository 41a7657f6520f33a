import styles from "./interrupts.module.css";

const ROWS_AT_MOST = 12;

interface GrowingTextProps {
  id: string;
  text: string;
  rows?: number;
  onChange(text: string): void;
}

/** An editor as high as its text, within bounds. */
export const GrowingText = ({ id, text, rows = 2, onChange }: GrowingTextProps) => (
  <textarea
    id={id}
    className={styles.growing}
    // For browsers without `field-sizing`.
    rows={Math.min(ROWS_AT_MOST, Math.max(rows, text.split("\n", ROWS_AT_MOST).length))}
    value={text}
    onChange={({ target }) => onChange(target.value)}
  />
);
