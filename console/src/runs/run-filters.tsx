import { useId, useState, type ReactNode } from "react";
import { assistantText, useAssistantNames, useGraphIds } from "../parts/assistants.ts";
import { RUN_STATUSES } from "../parts/run.ts";
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

/** Reports on blur or Enter, because each letter would start a search. */
const Text = ({ id, value, list, onChange }: TextProps) => {
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
      spellCheck={false}
      onChange={({ target }) => setText(target.value)}
      onBlur={finish}
      onKeyDown={({ key }) => {
        if (key === "Enter") finish();
      }}
    />
  );
};
interface TextProps {
  id: string;
  value: string;
  list?: string;
  onChange(value: string): void;
}

const isoOf = (local: string): string => (local === "" ? "" : new Date(local).toISOString());

export const RunFilters = ({
  filter,
  onChange,
  onClear,
}: {
  filter: RunFilter;
  onChange(changes: Partial<RunFilter>): void;
  onClear(): void;
}) => {
  const { data: assistants = [] } = useAssistantNames();
  const { data: graphIds = [] } = useGraphIds();
  const graphs = [...new Set([...graphIds, filter.graph])].filter((graph) => graph !== "").sort();
  const listId = useId();
  return (
    <search aria-label="Filter runs" className={styles.filters}>
      <Labelled label="Status">
        {(id) => (
          <select id={id} value={filter.status} onChange={({ target }) => onChange({ status: target.value })}>
            <option value="">all</option>
            {RUN_STATUSES.map((status) => (
              <option key={status}>{status}</option>
            ))}
          </select>
        )}
      </Labelled>
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
      <Labelled label="From">
        {(id) => (
          <input
            id={id}
            type="datetime-local"
            value={localTimeOf(filter.from)}
            onChange={({ target }) => onChange({ from: isoOf(target.value) })}
          />
        )}
      </Labelled>
      <Labelled label="To">
        {(id) => (
          <input
            id={id}
            type="datetime-local"
            value={localTimeOf(filter.to)}
            onChange={({ target }) => onChange({ to: isoOf(target.value) })}
          />
        )}
      </Labelled>
      {Object.values(filter).some((value) => value !== "") && (
        <button type="button" onClick={onClear}>
          Show all runs
        </button>
      )}
    </search>
  );
};
