import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useEffectEvent, useMemo, useRef, useState, type KeyboardEvent } from "react";
import type { ListedThread } from "./listed-threads.ts";
import type { ListRow } from "./thread-groups.ts";
import { ThreadRow } from "./thread-row.tsx";
import styles from "./thread-list.module.css";

const DAY_PIXELS = 32;
const THREAD_PIXELS = 36;
const TOUCH_PIXELS = 44;
/** The next page is read before the user reaches the end. */
const ROWS_AHEAD = 20;

interface ThreadRowsProps {
  rows: readonly ListRow[];
  now: number;
  current: string | undefined;
  selected: ReadonlySet<string>;
  onChoose?: (() => void) | undefined;
  onSelect(thread: ListedThread, isSelected: boolean, withShift: boolean): void;
  onDelete(thread: ListedThread): void;
  /** Called when the end of the list comes into view. */
  onEnd(): void;
}

const idOf = (row: ListRow | undefined): string | undefined =>
  row?.kind === "thread" ? row.thread.thread_id : undefined;

/** Renders only rows in view. Tab reaches one row, and arrow keys move to the others. */
export const ThreadRows = (props: ThreadRowsProps) => {
  const { rows, now, current, selected, onChoose, onSelect, onDelete, onEnd } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<string>();
  const isTouch = matchMedia("(pointer: coarse)").matches;
  // With another function, the places of all rows are computed anew at each frame.
  const getItemKey = useCallback(
    (index: number) => {
      const row = rows[index];
      return row === undefined ? index : row.kind === "day" ? `day ${row.label}` : row.thread.thread_id;
    },
    [rows],
  );
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: (index) =>
      rows[index]?.kind === "day" ? DAY_PIXELS : isTouch ? TOUCH_PIXELS : THREAD_PIXELS,
    getItemKey,
    overscan: 8,
  });
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  const isNearEnd = rows.length > 0 && lastShown >= rows.length - ROWS_AHEAD;
  const readMore = useEffectEvent(onEnd);
  useEffect(() => {
    if (isNearEnd) readMore();
  }, [isNearEnd, rows.length]);

  const indexOf = (id: string | undefined): number | undefined => {
    const index = id === undefined ? -1 : rows.findIndex((row) => idOf(row) === id);
    return index < 0 ? undefined : index;
  };
  const currentIndex = indexOf(current);
  const showCurrent = useEffectEvent(() => {
    if (currentIndex !== undefined) virtual.scrollToIndex(currentIndex, { align: "auto" });
  });
  const isListed = currentIndex !== undefined;
  useEffect(() => showCurrent(), [current, isListed]);
  const active = indexOf(focused) ?? currentIndex ?? rows.findIndex(({ kind }) => kind === "thread");
  const threads = useMemo(() => rows.filter(({ kind }) => kind === "thread").length, [rows]);

  const moveTo = (from: number, step: 1 | -1): void => {
    let index = from;
    while (rows[index] !== undefined && rows[index]?.kind !== "thread") index += step;
    const id = idOf(rows[index]);
    if (id === undefined) return;
    setFocused(id);
    virtual.scrollToIndex(index);
    const link = (): HTMLElement | null | undefined =>
      frame.current?.querySelector(`[data-thread="${CSS.escape(id)}"] a`);
    // A row beyond the view is rendered only after it was scrolled there.
    const rendered = link();
    if (rendered != null) rendered.focus();
    else requestAnimationFrame(() => link()?.focus());
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = (event.target as Element).closest<HTMLElement>("[data-thread]");
    const from = indexOf(row?.dataset["thread"]) ?? active;
    const moves: ReadonlyMap<string, () => void> = new Map([
      ["ArrowDown", () => moveTo(from + 1, 1)],
      ["ArrowUp", () => moveTo(from - 1, -1)],
      ["Home", () => moveTo(0, 1)],
      ["End", () => moveTo(rows.length - 1, -1)],
    ]);
    const move = moves.get(event.key);
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
  return (
    <div ref={frame} className={styles.frame} onKeyDown={onKeyDown}>
      <div
        role="list"
        aria-label="Threads by time"
        className={styles.rows}
        style={{ height: virtual.getTotalSize() }}
      >
        {items.map(({ index, key, start, size }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const style = { height: size, transform: `translateY(${start}px)` };
          if (row.kind === "day")
            return (
              <div key={key} aria-hidden className={styles.day} style={style}>
                {row.label}
              </div>
            );
          const { thread } = row;
          return (
            <div
              key={key}
              role="listitem"
              aria-setsize={threads}
              className={styles.row}
              data-thread={thread.thread_id}
              data-current={thread.thread_id === current}
              data-selected={selected.has(thread.thread_id)}
              style={style}
            >
              <ThreadRow
                thread={thread}
                now={now}
                isCurrent={thread.thread_id === current}
                isSelected={selected.has(thread.thread_id)}
                isActive={index === active}
                onChoose={onChoose}
                onSelect={onSelect}
                onDelete={onDelete}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
};
