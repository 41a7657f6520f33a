import { ChevronDown } from "lucide-react";
import { useMemo } from "react";
import { Chip } from "../design/chip.tsx";
import { Menu } from "../design/menu.tsx";
import { truncate } from "../design/truncate.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import { countsByGraph, isOlder, matches, NO_FILTER, type InboxFilter } from "./filter.ts";
import type { WaitingThread } from "./waiting-list.ts";
import styles from "./inbox.module.css";

const GRAPHS_SHOWN = 5;
const NAME_CHARACTERS = 30;
const AGES: readonly (readonly [string, number])[] = [
  ["Over an hour", 1],
  ["Over a day", 24],
];

interface FilterChipsProps {
  threads: readonly WaitingThread[];
  /** Whether there are more threads, so nobody knows the numbers. */
  hasMore: boolean;
  me: string;
  filter: InboxFilter;
  onChange(filter: InboxFilter): void;
}

/** The chips as commands of the palette. */
const useFilterCommands = ({ threads, me, filter, onChange }: Omit<FilterChipsProps, "hasMore">): void => {
  const graphs = JSON.stringify(
    countsByGraph(threads)
      .slice(0, GRAPHS_SHOWN)
      .map(([graph]) => graph),
  );
  const commands = useMemo<Command[]>(() => {
    const show = (words: string, part: Partial<InboxFilter>): Command => ({
      ...{ label: `Show ${words}`, group: "Inbox" },
      run: () => onChange({ ...filter, ...part }),
    });
    return [
      ...(me === "" ? [] : [show("my threads", { owner: "mine" })]),
      show("unassigned threads", { owner: "unassigned" }),
      ...(JSON.parse(graphs) as string[]).map((graph) => ({
        ...show(`threads of ${truncate(graph, NAME_CHARACTERS)}`, { graph }),
        id: graph,
      })),
      show("all waiting threads", NO_FILTER),
    ];
  }, [filter, graphs, me, onChange]);
  useCommands(commands);
};

export const FilterChips = ({ threads, hasMore, me, filter, onChange }: FilterChipsProps) => {
  useFilterCommands({ threads, me, filter, onChange });
  const count = (number: number): number | undefined => (hasMore ? undefined : number);
  const toggle = <Key extends keyof InboxFilter>(key: Key, value: InboxFilter[Key]): void =>
    onChange({ ...filter, [key]: filter[key] === value ? undefined : value });
  const ownedBy = (owner: "mine" | "unassigned"): number =>
    threads.filter((thread) => matches(thread, { ...NO_FILTER, owner }, me)).length;
  const graphs = countsByGraph(threads);
  const listed = graphs.slice(0, GRAPHS_SHOWN);
  if (filter.graph !== undefined && !listed.some(([graph]) => graph === filter.graph))
    listed.push([filter.graph, graphs.find(([graph]) => graph === filter.graph)?.[1] ?? 0]);
  return (
    <div className={styles.filters} role="group" aria-label="Filters">
      {me !== "" && (
        <Chip
          isOn={filter.owner === "mine"}
          onToggle={() => toggle("owner", "mine")}
          count={count(ownedBy("mine"))}
        >
          Mine
        </Chip>
      )}
      <Chip
        isOn={filter.owner === "unassigned"}
        onToggle={() => toggle("owner", "unassigned")}
        count={count(ownedBy("unassigned"))}
      >
        Unassigned
      </Chip>
      {AGES.map(([words, hours]) => (
        <Chip
          key={hours}
          isOn={filter.hours === hours}
          onToggle={() => toggle("hours", hours)}
          count={count(threads.filter((thread) => isOlder(thread, hours)).length)}
        >
          {words}
        </Chip>
      ))}
      {(graphs.length > 1 || filter.graph !== undefined) &&
        listed.map(([graph, waiting]) => (
          <Chip
            key={graph}
            isOn={filter.graph === graph}
            onToggle={() => toggle("graph", graph)}
            count={count(waiting)}
          >
            {truncate(graph, NAME_CHARACTERS)}
          </Chip>
        ))}
      {graphs.length > GRAPHS_SHOWN && (
        <Menu
          trigger={
            <button type="button" className="plain small">
              More graphs <ChevronDown aria-hidden size={14} />
            </button>
          }
          items={graphs
            .slice(GRAPHS_SHOWN)
            .map(([graph]) => ({ label: truncate(graph), onSelect: () => toggle("graph", graph) }))}
        />
      )}
    </div>
  );
};
