import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useId, useState } from "react";
import { JsonView } from "../parts/json.tsx";
import { LongText } from "../parts/long-text.tsx";
import { MarkedText } from "../parts/marked-text.tsx";
import { compare, FIELDS_AT_MOST, type ComparedField } from "./difference.ts";
import { VersionChoice } from "./trial/version-choice.tsx";
import styles from "./assistants.module.css";

interface ComparisonProps {
  assistant: Assistant;
  /** Newest first. */
  versions: readonly AssistantVersion[];
}

export const Comparison = ({ assistant, versions }: ComparisonProps) => {
  const id = useId();
  const [chosen, setChosen] = useState<{ left?: number | undefined; right?: number | undefined }>({});
  const [isAll, setIsAll] = useState(false);
  const find = (number: number | undefined) => versions.find(({ version }) => version === number);
  // At first, the newest other version and the active one.
  const right = find(chosen.right ?? assistant.version);
  const left = find(chosen.left) ?? versions.find((each) => each !== right) ?? right;
  const choice = (side: "left" | "right", label: string, version: number | undefined) => (
    <VersionChoice
      label={label}
      versions={versions}
      active={assistant.version}
      chosen={version}
      onChoose={(number) => setChosen({ ...chosen, [side]: number })}
    />
  );
  return (
    <section className="stack" aria-labelledby={`${id}heading`}>
      <h2 id={`${id}heading`}>Side by side</h2>
      <div className="row">
        {choice("left", "Compare", left?.version)}
        {choice("right", "with", right?.version)}
        <label className="row">
          <input type="checkbox" checked={isAll} onChange={({ target }) => setIsAll(target.checked)} />
          Show equal fields
        </label>
      </div>
      {left !== undefined && right !== undefined && <Differences left={left} right={right} isAll={isAll} />}
    </section>
  );
};

interface DifferencesProps {
  left: AssistantVersion;
  right: AssistantVersion;
  isAll: boolean;
}

const CHARACTERS_SHOWN = 2_000;

/** Keeps the line breaks of prompts. */
const Whole = ({ value }: { value: unknown }) =>
  typeof value === "string" ? (
    <span className={styles.prose}>
      <LongText text={value} characters={CHARACTERS_SHOWN}>
        {(text) => text}
      </LongText>
    </span>
  ) : (
    <JsonView value={value} />
  );

/** Without commas at the ends of lines, so that a new last item does not change the one before. */
const linesOf = (value: unknown): string => (JSON.stringify(value, null, 2) ?? "").replace(/,$/gm, "");

const Side = ({ field, side }: { field: ComparedField; side: "left" | "right" }) => {
  const { left, right } = field;
  const own = field[side];
  if (own === undefined) return <span className="faint">–</span>;
  if (field.difference !== "changed" || left === undefined || right === undefined)
    return <Whole value={own.value} />;
  const shown = side === "left" ? "before" : "after";
  const [before, after] = [left.value, right.value];
  return typeof before === "string" && typeof after === "string" ? (
    <MarkedText before={before} after={after} side={shown} />
  ) : (
    <MarkedText before={linesOf(before)} after={linesOf(after)} side={shown} unit="lines" />
  );
};

const Differences = ({ left, right, isAll }: DifferencesProps) => {
  const fields = compare(left, right).filter(({ difference }) => isAll || difference !== "same");
  const words: Record<ComparedField["difference"], string> = {
    same: "same",
    changed: "changed",
    "left only": `only in version ${left.version}`,
    "right only": `only in version ${right.version}`,
  };
  if (fields.length === 0) return <p role="status">The two versions are equal.</p>;
  return (
    <>
      <ul className={styles.differences} aria-label="Differences">
        {fields.slice(0, FIELDS_AT_MOST).map((field) => (
          <li key={field.path} data-difference={field.difference}>
            <p className={styles.path}>
              <strong>{field.path}</strong>
              <span className="faint">{words[field.difference]}</span>
            </p>
            <dl className={styles.sides}>
              <div>
                <dt>Version {left.version}</dt>
                <dd>
                  <Side field={field} side="left" />
                </dd>
              </div>
              <div>
                <dt>Version {right.version}</dt>
                <dd>
                  <Side field={field} side="right" />
                </dd>
              </div>
            </dl>
          </li>
        ))}
      </ul>
      {fields.length > FIELDS_AT_MOST && (
        <p className="faint">{fields.length - FIELDS_AT_MOST} more fields are not shown.</p>
      )}
    </>
  );
};
