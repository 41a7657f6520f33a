import { diffWordsWithSpace } from "diff";
import { useDeferredValue, useMemo } from "react";
import styles from "./interrupts.module.css";

/** Longer texts take too long to compare while a person types. */
const CHARACTERS_AT_MOST = 20_000;
const COMPARED_AT_MOST_MS = 100;
const KEPT_AROUND = 60;

/** The beginning and the end of a long text that is the same in both. */
const shortened = (text: string): string =>
  text.length <= 2 * KEPT_AROUND ? text : `${text.slice(0, KEPT_AROUND)} … ${text.slice(-KEPT_AROUND)}`;

/** What a person changed in a text, word by word. */
export const TextDifference = ({ name, before, after }: { name: string; before: string; after: string }) => {
  const now = useDeferredValue(after);
  const parts = useMemo(
    () =>
      before.length > CHARACTERS_AT_MOST || now.length > CHARACTERS_AT_MOST
        ? undefined
        : diffWordsWithSpace(before, now, { timeout: COMPARED_AT_MOST_MS }),
    [before, now],
  );
  if (before === after) return null;
  return (
    <div className={styles.difference} role="group" aria-label={`Changes of ${name}`}>
      <span className={styles.legend}>Changes</span>
      {parts === undefined ? (
        <p className="faint">The texts are too long to compare.</p>
      ) : (
        <p className={styles.plain}>
          {parts.map(({ value, added, removed }, index) =>
            added ? (
              <ins key={index}>{value}</ins>
            ) : removed ? (
              <del key={index}>{value}</del>
            ) : (
              <span key={index}>{shortened(value)}</span>
            ),
          )}
        </p>
      )}
    </div>
  );
};
