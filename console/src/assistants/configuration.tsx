import type { Assistant } from "@langchain/langgraph-sdk";
import { isObject } from "../parts/is-object.ts";
import { JsonView } from "../parts/json.tsx";
import { LongText } from "../parts/long-text.tsx";
import { truncate } from "../design/truncate.ts";
import styles from "./assistants.module.css";

const FIELDS_SHOWN = 100;
const CHARACTERS_SHOWN = 2_000;

/** Keeps the line breaks of prompts. */
const Value = ({ value }: { value: unknown }) =>
  typeof value === "string" ? (
    <span className={styles.prose}>
      <LongText text={value} characters={CHARACTERS_SHOWN}>
        {(text) => text}
      </LongText>
    </span>
  ) : Array.isArray(value) && value.length <= 20 && value.every((item) => typeof item === "string") ? (
    <span className={styles.prose}>{truncate(value.join(", "), CHARACTERS_SHOWN) || "none"}</span>
  ) : (
    <JsonView value={value} depth={2} />
  );

const FieldList = ({ value }: { value: unknown }) => {
  const entries = isObject(value) ? Object.entries(value) : [];
  if (entries.length === 0) return <p className="faint">Empty</p>;
  if (entries.length > FIELDS_SHOWN) return <JsonView value={value} depth={1} />;
  return (
    <dl className={styles.fields}>
      {entries.map(([name, child]) => (
        <div key={name}>
          <dt>{truncate(name)}</dt>
          <dd>
            <Value value={child} />
          </dd>
        </div>
      ))}
    </dl>
  );
};

const SECTIONS = [
  ["context", "Context"],
  ["config", "Config"],
  ["metadata", "Metadata"],
] as const;

export const Configuration = ({ assistant }: { assistant: Assistant }) => (
  <div className={styles.sections}>
    {SECTIONS.map(([field, title]) => (
      <section key={field} className={styles.section} aria-labelledby={`heading-${field}`}>
        <h2 id={`heading-${field}`}>{title}</h2>
        <FieldList value={assistant[field]} />
      </section>
    ))}
  </div>
);
