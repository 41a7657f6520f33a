import { useDeferredValue } from "react";
import { MarkedText } from "../marked-text.tsx";
import styles from "./interrupts.module.css";

/** What a person changed in a text, word by word. */
export const TextDifference = ({ name, before, after }: { name: string; before: string; after: string }) => {
  const now = useDeferredValue(after);
  if (before === after) return null;
  return (
    <div className={styles.difference} role="group" aria-label={`Changes of ${name}`}>
      <span className={styles.legend}>Changes</span>
      <MarkedText before={before} after={now} isShortened />
    </div>
  );
};
