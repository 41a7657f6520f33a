import { useMemo, useState } from "react";
import { JsonView } from "../json.tsx";
import { LongText } from "../long-text.tsx";
import { Empty } from "../notice.tsx";
import { changesBetween, partsOfTexts, type Change } from "./changes.ts";
import styles from "./difference.module.css";

const CHANGES_SHOWN = 50;
/** Unchanged text around a change. */
const CONTEXT_CHARACTERS = 60;
const TEXT_CHARACTERS = 1_500;

const WORDS: Record<Change["kind"], string> = {
  added: "Added",
  removed: "Removed",
  changed: "Changed",
  moved: "Moved",
};

const Text = ({ children }: { children: string }) => (
  <LongText text={children} characters={TEXT_CHARACTERS}>
    {(shown) => shown}
  </LongText>
);

const TextChange = ({ before, after }: { before: string; after: string }) => {
  const { start, removed, added, end } = useMemo(() => partsOfTexts(before, after), [before, after]);
  return (
    <p className={styles.text}>
      {start.length > CONTEXT_CHARACTERS && "…"}
      {start.slice(-CONTEXT_CHARACTERS)}
      {removed !== "" && (
        <del>
          <span className="unseen">removed: </span>
          <Text>{removed}</Text>
        </del>
      )}
      {added !== "" && (
        <ins>
          <span className="unseen">added: </span>
          <Text>{added}</Text>
        </ins>
      )}
      {end.slice(0, CONTEXT_CHARACTERS)}
      {end.length > CONTEXT_CHARACTERS && "…"}
    </p>
  );
};

const Values = ({ change: { kind, before, after } }: { change: Change }) => {
  if (kind === "moved") return <p>{`from position ${String(before)} to position ${String(after)}`}</p>;
  if (typeof before === "string" && typeof after === "string")
    return <TextChange before={before} after={after} />;
  if (kind !== "changed") return <JsonView value={kind === "added" ? after : before} />;
  return (
    <dl className={styles.pair}>
      <dt>before</dt>
      <dd>
        <JsonView value={before} />
      </dd>
      <dt>after</dt>
      <dd>
        <JsonView value={after} />
      </dd>
    </dl>
  );
};

export const Difference = ({ before, after }: { before: unknown; after: unknown }) => {
  const changes = useMemo(() => changesBetween(before, after), [before, after]);
  const [shown, setShown] = useState(CHANGES_SHOWN);
  if (changes.length === 0) return <Empty>No differences.</Empty>;
  return (
    <>
      <ul className={styles.changes} aria-label="Differences">
        {changes.slice(0, shown).map((change) => (
          <li key={`${change.kind} ${change.path.join("\n")}`} data-kind={change.kind}>
            <p className={styles.head}>
              <strong>{WORDS[change.kind]}</strong>{" "}
              <code>{change.path.join(" › ") || "the whole value"}</code>
            </p>
            <Values change={change} />
          </li>
        ))}
      </ul>
      {changes.length > shown && (
        <button type="button" onClick={() => setShown(shown + CHANGES_SHOWN)}>
          {changes.length - shown} more
        </button>
      )}
    </>
  );
};
