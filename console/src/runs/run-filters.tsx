import { ListFilter, X } from "lucide-react";
import { Chip } from "../design/chip.tsx";
import { Popover } from "../design/popover.tsx";
import { truncate } from "../design/truncate.ts";
import { assistantText, useAssistantNames } from "../parts/assistants.ts";
import { shortId } from "../parts/record-link.tsx";
import { RUN_STATUSES } from "../parts/run.ts";
import { FilterForm } from "./filter-form.tsx";
import type { RunFilter } from "./run-filter.ts";
import styles from "./runs.module.css";

const CHARACTERS_OF_VALUE = 40;
const LABELS: readonly (readonly [Exclude<keyof RunFilter, "status">, string])[] = [
  ["graph", "Graph"],
  ["assistant", "Assistant"],
  ["thread", "Thread"],
  ["metadata", "Metadata"],
  ["from", "From"],
  ["to", "To"],
];
const when = new Intl.DateTimeFormat("en-GB", { dateStyle: "short", timeStyle: "short" });

interface RunFiltersProps {
  filter: RunFilter;
  onChange(changes: Partial<RunFilter>): void;
  onClear(): void;
}

export const RunFilters = ({ filter, onChange, onClear }: RunFiltersProps) => {
  const { data: assistants = [] } = useAssistantNames();
  const valueText = (name: keyof RunFilter): string => {
    const value = filter[name];
    if (name === "from" || name === "to")
      return Number.isNaN(Date.parse(value)) ? value : when.format(new Date(value));
    if (name === "thread") return value.length > 8 ? `…${shortId(value)}` : value;
    const assistant =
      name === "assistant" ? assistants.find(({ assistant_id: id }) => id === value) : undefined;
    return truncate(assistant === undefined ? value : assistantText(assistant), CHARACTERS_OF_VALUE);
  };
  const used = LABELS.filter(([name]) => filter[name] !== "");
  return (
    <search aria-label="Filter runs" className={styles.filters}>
      <div className={styles.chips} role="group" aria-label="Status">
        {RUN_STATUSES.map((status) => (
          <Chip
            key={status}
            isOn={filter.status === status}
            onToggle={() => onChange({ status: filter.status === status ? "" : status })}
          >
            <span aria-hidden className={styles.dot} data-status={status} />
            {status}
          </Chip>
        ))}
      </div>
      <Popover
        title="Filter"
        trigger={
          <button type="button" className="small">
            <ListFilter aria-hidden size={14} strokeWidth={1.75} />
            Filter
          </button>
        }
      >
        <FilterForm filter={filter} onChange={onChange} />
      </Popover>
      {used.map(([name, label]) => (
        <button
          key={name}
          type="button"
          className={`small ${styles.used}`}
          onClick={() => onChange({ [name]: "" })}
        >
          {`${label}: ${valueText(name)}`}
          <span className="unseen">, remove</span>
          <X aria-hidden size={12} strokeWidth={2} />
        </button>
      ))}
      {(used.length > 0 || filter.status !== "") && (
        <button type="button" className="plain small" onClick={onClear}>
          Show all runs
        </button>
      )}
    </search>
  );
};
