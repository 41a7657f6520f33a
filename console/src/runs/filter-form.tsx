import { useId, useState, type ReactNode } from "react";
import { assistantText, useAssistantNames, useGraphIds } from "../parts/assistants.ts";
import { localTimeOf } from "../parts/time.tsx";
import type { RunFilter } from "./run-filter.ts";
import styles from "./runs.module.css";

const Labelled = ({ label, children }: { label: string; children(id: string): ReactNode }) => {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
};

interface TextProps {
  id: string;
  value: string;
  list?: string;
  placeholder?: string;
  onChange(value: string): void;
}

/** Reports on blur or Enter, because each letter would start a search. */
const Text = ({ id, value, list, placeholder, onChange }: TextProps) => {
  const [text, setText] = useState(value);
  const [given, setGiven] = useState(value);
  if (given !== value) {
    setGiven(value);
    setText(value);
  }
  const finish = (): void => {
    if (text.trim() !== value) onChange(text.trim());
  };
  return (
    <input
      id={id}
      value={text}
      list={list}
      placeholder={placeholder}
      spellCheck={false}
      onChange={({ target }) => setText(target.value)}
      onBlur={finish}
      onKeyDown={({ key }) => {
        if (key === "Enter") finish();
      }}
    />
  );
};

const isoOf = (local: string): string => (local === "" ? "" : new Date(local).toISOString());

interface FilterFormProps {
  filter: RunFilter;
  onChange(changes: Partial<RunFilter>): void;
}

export const FilterForm = ({ filter, onChange }: FilterFormProps) => {
  const { data: assistants = [] } = useAssistantNames();
  const { data: graphIds = [] } = useGraphIds();
  const graphs = [...new Set([...graphIds, filter.graph])].filter((graph) => graph !== "").sort();
  const listId = useId();
  const timeOf = (name: "from" | "to") => (id: string) => (
    <input
      id={id}
      type="datetime-local"
      value={localTimeOf(filter[name])}
      onChange={({ target }) => onChange({ [name]: isoOf(target.value) })}
    />
  );
  return (
    <div className={styles.form}>
      <Labelled label="Graph">
        {(id) => (
          <select id={id} value={filter.graph} onChange={({ target }) => onChange({ graph: target.value })}>
            <option value="">all</option>
            {graphs.map((graph) => (
              <option key={graph}>{graph}</option>
            ))}
          </select>
        )}
      </Labelled>
      <Labelled label="Assistant">
        {(id) => (
          <Text
            id={id}
            list={listId}
            value={filter.assistant}
            onChange={(assistant) => onChange({ assistant })}
          />
        )}
      </Labelled>
      <datalist id={listId}>
        {assistants.map((one) => (
          <option key={one.assistant_id} value={one.assistant_id}>
            {assistantText(one)}
          </option>
        ))}
      </datalist>
      <Labelled label="Thread">
        {(id) => <Text id={id} value={filter.thread} onChange={(thread) => onChange({ thread })} />}
      </Labelled>
      <Labelled label="Metadata">
        {(id) => (
          <Text
            id={id}
            value={filter.metadata}
            placeholder="name=value, or a JSON object"
            onChange={(metadata) => onChange({ metadata })}
          />
        )}
      </Labelled>
      <Labelled label="From">{timeOf("from")}</Labelled>
      <Labelled label="To">{timeOf("to")}</Labelled>
    </div>
  );
};
