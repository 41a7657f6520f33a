import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useEffectEvent, useId, useRef, useState, type KeyboardEvent } from "react";
import { Time } from "../parts/time.tsx";
import { nodeNames, titleOf, type Branch, type TreeRow } from "./tree.ts";
import styles from "./checkpoint-tree.module.css";

const ROW_HEIGHT = 56;
const LEVELS_INDENTED = 6;
const PAGE_KEY_ROWS = 10;

const branchText = ({ number, length, from }: Branch): string => {
  const size = length === 1 ? "1 checkpoint" : `${length} checkpoints`;
  if (from === undefined) return number === 1 ? "" : `Branch ${number}, a new start, ${size}`;
  if (!from.isLoaded) return number === 1 ? "" : `Branch ${number}, from an older checkpoint, ${size}`;
  return `Branch ${number}, from step ${from.step ?? "?"}, ${size}`;
};

const factsOf = ({ state, ways, wrote }: TreeRow): string[] => {
  const next = nodeNames(state.next.filter((name) => name !== "__start__"));
  const hasAsked = (state.interrupts ?? []).length > 0;
  return [
    state.next.includes("__start__") ? "a run starts" : "",
    wrote.length > 0 ? `wrote: ${nodeNames(wrote)}` : "",
    next === "" ? "" : `next: ${next}`,
    hasAsked ? (ways > 0 ? "had an interrupt" : "waits for an answer") : "",
    ways > 1 ? `${ways} branches` : "",
  ].filter((fact) => fact !== "");
};

const Row = ({ row }: { row: TreeRow }) => {
  const { state, branch } = row;
  const caption = branch === undefined ? "" : branchText(branch);
  return (
    <>
      {caption !== "" && <span className={styles.branch}>{caption}</span>}
      <span className={styles.line}>
        <strong>{titleOf(state)}</strong>
        {state.created_at !== null && (
          <span className={styles.time}>
            <Time iso={state.created_at} />
          </span>
        )}
      </span>
      <span className={styles.facts}>{factsOf(row).join(" · ") || "no next node"}</span>
    </>
  );
};

interface CheckpointTreeProps {
  rows: readonly TreeRow[];
  selected: string | undefined;
  compared: string | undefined;
  onSelect(id: string): void;
}

const stepOf = (key: string, active: number, count: number): number | undefined => {
  const steps: ReadonlyMap<string, number> = new Map([
    ["ArrowDown", active + 1],
    ["ArrowUp", active - 1],
    ["PageDown", active + PAGE_KEY_ROWS],
    ["PageUp", active - PAGE_KEY_ROWS],
    ["Home", 0],
    ["End", count - 1],
  ]);
  const step = steps.get(key);
  return step === undefined ? undefined : Math.min(count - 1, Math.max(0, step));
};

/** Arrow keys move, Enter selects. */
export const CheckpointTree = ({ rows, selected, compared, onSelect }: CheckpointTreeProps) => {
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  const selectedIndex = rows.findIndex((row) => row.id === selected);
  const [activeId, setActiveId] = useState<string>();
  const activeIndex = rows.findIndex((row) => row.id === activeId);
  const active = activeIndex >= 0 ? activeIndex : Math.max(0, selectedIndex);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 8,
  });
  const showSelected = useEffectEvent(() => {
    if (selectedIndex >= 0) virtual.scrollToIndex(selectedIndex, { align: "auto" });
  });
  // Only on a new selection, so new checkpoints do not move the scroll position.
  useEffect(() => showSelected(), [selected]);

  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    if (key === "Enter" || key === " ") {
      event.preventDefault();
      const row = rows[active];
      if (row !== undefined) onSelect(row.id);
      return;
    }
    const index = stepOf(key, active, rows.length);
    if (index === undefined) return;
    event.preventDefault();
    setActiveId(rows[index]?.id);
    virtual.scrollToIndex(index, { align: "auto" });
  };

  const items = virtual.getVirtualItems();
  const isActiveDrawn = items.some(({ index }) => index === active);
  return (
    <div
      ref={frame}
      className={styles.tree}
      role="tree"
      aria-label="Checkpoints"
      tabIndex={0}
      // Includes both borders.
      style={{ maxHeight: virtual.getTotalSize() + 2 }}
      aria-activedescendant={isActiveDrawn ? `${id}${active}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div role="none" style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {items.map(({ index, key, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              id={`${id}${index}`}
              data-index={index}
              data-checkpoint={row.id}
              data-active={index === active || undefined}
              data-compared={row.id === compared || undefined}
              className={styles.row}
              style={{
                transform: `translateY(${start}px)`,
                paddingInlineStart: `${0.75 + Math.min(row.level, LEVELS_INDENTED) * 1.1}rem`,
              }}
              role="treeitem"
              aria-level={row.level + 1}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
              aria-selected={row.id === selected}
              onClick={() => {
                setActiveId(row.id);
                onSelect(row.id);
              }}
            >
              <Row row={row} />
            </div>
          );
        })}
      </div>
    </div>
  );
};
