import { diffLines, diffWordsWithSpace, type ChangeObject } from "diff";
import { useMemo } from "react";
import styles from "./marked-text.module.css";

/** Longer texts block the page. */
const CHARACTERS_AT_MOST = 20_000;
const COMPARED_AT_MOST_MS = 50;
const LINE_BREAK_AT_END = /\n$/;
const KEPT_AROUND = 60;

interface MarkedTextProps {
  before: string;
  after: string;
  /** Which of the two texts is shown; undefined: both, as one text. */
  side?: "before" | "after";
  /** `lines`: each line has a sign. */
  unit?: "words" | "lines";
  /** Leaves out the middle of long passages that are the same. */
  isShortened?: boolean;
}

/** Texts that share little are easier to read as two whole texts. */
const SHARED_AT_LEAST = 1 / 3;

const wordParts = (before: string, after: string): ChangeObject<string>[] => {
  const parts = diffWordsWithSpace(before, after, { timeout: COMPARED_AT_MOST_MS });
  const shared = (parts ?? []).reduce(
    (sum, { added, removed, value }) => (added || removed ? sum : sum + value.trim().length),
    0,
  );
  if (parts !== undefined && shared >= Math.min(before.length, after.length) * SHARED_AT_LEAST) return parts;
  return [
    { value: before, removed: true, added: false, count: 1 },
    { value: after, removed: false, added: true, count: 1 },
  ].filter(({ value }) => value !== "");
};

const markOf = ({ added, removed }: ChangeObject<string>): "added" | "removed" | "same" =>
  added ? "added" : removed ? "removed" : "same";

const SIGNS = { added: "+", removed: "−", same: " " } as const;

const Lines = ({ part }: { part: ChangeObject<string> }) => {
  const sign = SIGNS[markOf(part)];
  return part.value
    .replace(LINE_BREAK_AT_END, "")
    .split("\n")
    .map((line) => `${sign} ${line}\n`)
    .join("");
};

/** The beginning and the end of a long text that is the same in both. */
const shortened = (text: string): string =>
  text.length <= 2 * KEPT_AROUND ? text : `${text.slice(0, KEPT_AROUND)} … ${text.slice(-KEPT_AROUND)}`;

/** Marks what differs by a line through or below the text, and by a colour. */
export const MarkedText = (props: MarkedTextProps) => {
  const { before, after, side, unit = "words", isShortened = false } = props;
  const parts = useMemo(() => {
    if (before.length > CHARACTERS_AT_MOST || after.length > CHARACTERS_AT_MOST) return undefined;
    return unit === "words"
      ? wordParts(before, after)
      : diffLines(before, after, { timeout: COMPARED_AT_MOST_MS });
  }, [before, after, unit]);
  if (parts === undefined)
    return (
      <>
        <p className="faint">The texts are too long to mark their differences.</p>
        {!isShortened && (
          <p className={styles.text}>{(side === "before" ? before : after).slice(0, CHARACTERS_AT_MOST)}…</p>
        )}
      </>
    );
  const hidden = side === "before" ? "added" : side === "after" ? "removed" : undefined;
  return (
    <p className={unit === "lines" ? styles.lines : styles.text}>
      {parts.map((part, index) => {
        const mark = markOf(part);
        if (mark === hidden) return null;
        const shown = unit === "lines" ? <Lines part={part} /> : part.value;
        if (mark === "added") return <ins key={index}>{shown}</ins>;
        if (mark === "removed") return <del key={index}>{shown}</del>;
        return <span key={index}>{isShortened ? shortened(part.value) : shown}</span>;
      })}
    </p>
  );
};
