import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useEffectEvent, useId, useRef, useState, type KeyboardEvent } from "react";
import type { Branch, TreeRow, Turn } from "./tree.ts";
import { StepRow, TurnRow } from "./turn-rows.tsx";
import styles from "./checkpoint-tree.module.css";

const ROW_HEIGHT = 56;
const LEVELS_INDENTED = 6;
const PAGE_KEY_ROWS = 10;

/** A turn, or a checkpoint: of a turn that is open, or stored without a run. */
type Item =
  | { kind: "turn"; id: string; turn: Turn; level: number }
  | { kind: "step"; id: string; row: TreeRow; level: number; branch: Branch | undefined };

const itemsOf = (turns: readonly Turn[], open: ReadonlySet<string>): Item[] =>
  turns.flatMap((turn): Item[] => {
    const { id, level, branch, rows, runId } = turn;
    const steps = (below: number, of: Branch | undefined): Item[] =>
      rows.map((row, index) => ({
        ...{ kind: "step" as const, id: row.id, row, level: below },
        branch: index === 0 ? of : undefined,
      }));
    if (runId === undefined) return steps(level, branch);
    return [
      { kind: "turn", id: `turn ${id}`, turn, level },
      ...(open.has(id) ? steps(level + 1, undefined) : []),
    ];
  });

interface CheckpointTreeProps {
  threadId: string;
  turns: readonly Turn[];
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

/** The newest turn and the turn of the selected checkpoint are open, unless the user closed them. */
const useOpenTurns = (turns: readonly Turn[], selected: string | undefined) => {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const open = new Set(
    turns
      .filter(
        ({ rows }, index) =>
          chosen.get(rows.at(-1)?.id ?? "") ?? (index === 0 || rows.some(({ id }) => id === selected)),
      )
      .map(({ id }) => id),
  );
  // By its oldest checkpoint, because a running turn grows.
  const toggle = ({ id, rows }: Turn, isOpen = !open.has(id)): void =>
    setChosen((before) => new Map(before).set(rows.at(-1)?.id ?? "", isOpen));
  return { open, toggle };
};

/** Up and down move, left and right close and open a turn, Enter selects. */
export const CheckpointTree = ({ threadId, turns, selected, compared, onSelect }: CheckpointTreeProps) => {
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  const { open, toggle } = useOpenTurns(turns, selected);
  const items = itemsOf(turns, open);
  const selectedIndex = items.findIndex((item) => item.id === selected);
  const [activeId, setActiveId] = useState<string>();
  const activeIndex = items.findIndex((item) => item.id === activeId);
  const active = activeIndex >= 0 ? activeIndex : Math.max(0, selectedIndex);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => items[index]?.id ?? index,
    overscan: 8,
  });
  const showSelected = useEffectEvent(() => {
    if (selectedIndex >= 0) virtual.scrollToIndex(selectedIndex, { align: "auto" });
  });
  // Only on a new selection, so new checkpoints do not move the scroll position.
  useEffect(() => showSelected(), [selected]);

  const choose = (item: Item | undefined): void => {
    if (item === undefined) return;
    setActiveId(item.id);
    if (item.kind === "step") return onSelect(item.id);
    toggle(item.turn);
    if (!open.has(item.turn.id)) onSelect(item.turn.id);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    const item = items[active];
    const isOfTurn = item?.kind === "turn" && (key === "ArrowRight" || key === "ArrowLeft");
    const index = stepOf(key, active, items.length);
    if (key === "Enter" || key === " ") choose(item);
    else if (isOfTurn) toggle(item.turn, key === "ArrowRight");
    else if (index !== undefined) {
      setActiveId(items[index]?.id);
      virtual.scrollToIndex(index, { align: "auto" });
    } else return;
    event.preventDefault();
  };

  const shown = virtual.getVirtualItems();
  const isActiveDrawn = shown.some(({ index }) => index === active);
  return (
    <div
      ref={frame}
      className={styles.tree}
      role="tree"
      aria-label="Checkpoints"
      tabIndex={0}
      aria-activedescendant={isActiveDrawn ? `${id}${active}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div role="none" style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {shown.map(({ index, key, start }) => {
          const item = items[index];
          if (item === undefined) return null;
          const isTurn = item.kind === "turn";
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              id={`${id}${index}`}
              data-index={index}
              data-checkpoint={isTurn ? undefined : item.id}
              data-turn={isTurn ? item.turn.id : undefined}
              data-active={index === active || undefined}
              data-compared={item.id === compared || undefined}
              className={isTurn ? `${styles.row} ${styles.turn}` : styles.row}
              style={{
                transform: `translateY(${start}px)`,
                paddingInlineStart: `${0.75 + Math.min(item.level, LEVELS_INDENTED) * 1.1}rem`,
              }}
              role="treeitem"
              aria-level={item.level + 1}
              aria-setsize={items.length}
              aria-posinset={index + 1}
              aria-selected={item.id === selected}
              aria-expanded={isTurn ? open.has(item.turn.id) : undefined}
              onClick={() => choose(item)}
            >
              {isTurn ? (
                <TurnRow threadId={threadId} turn={item.turn} isOpen={open.has(item.turn.id)} />
              ) : (
                <StepRow row={item.row} branch={item.branch} />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
};
