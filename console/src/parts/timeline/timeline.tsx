import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronRight } from "lucide-react";
import { useEffect, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent } from "react";
import { useIsWide } from "../../design/use-is-wide.ts";
import { truncate } from "../../design/truncate.ts";
import { durationText } from "../time.tsx";
import { endOf } from "./spans.ts";
import { barOf, parentRow, rowsOf, tickOf, type Row } from "./rows.ts";
import { KindIcon, StateIcon } from "./span-icons.tsx";
import type { Span } from "./trace.ts";
import styles from "./timeline.module.css";

const ROW_PX = 36;
/** On a phone, the bar is below the name. */
const TALL_ROW_PX = 56;
const LEVELS_INDENTED = 12;
const ROWS_PER_PAGE = 10;

const number = new Intl.NumberFormat("en");

interface TimelineProps {
  label: string;
  spans: readonly Span[];
  /** When spans that run end. */
  totalMs: number;
  /** The end of the axis, if it is not `totalMs`. */
  scaleMs?: number;
  /** Whether the place is as narrow as a panel or a phone: then the bar is below the name. */
  isNarrow?: boolean;
  selected: number | undefined;
  onSelect(id: number): void;
  /** Enter or a click on a row. */
  onOpen?(id: number): void;
}

const percent = (value: number): string => `${value.toFixed(3)}%`;

/** A later label would be cut off. */
const LABELS_UP_TO = 88;

const tickText = (milliseconds: number): string =>
  milliseconds === 0 ? "0" : durationText(milliseconds).replace(".0 s", " s").replace(/ 0 s$/, "");

const Axis = ({ scaleMs, tick }: { scaleMs: number; tick: number }) => (
  <div className={styles.axis} aria-hidden>
    {Array.from({ length: Math.floor(scaleMs / tick) + 1 }, (_, index) => {
      const left = scaleMs <= 0 ? 0 : ((index * tick) / scaleMs) * 100;
      return (
        <span key={index} style={{ left: percent(left) }}>
          {left > LABELS_UP_TO ? "" : tickText(index * tick)}
        </span>
      );
    })}
  </div>
);

const BarOf = ({ span, totalMs, scaleMs }: { span: Span; totalMs: number; scaleMs: number }) => {
  const { left, width, firstToken } = barOf(span, totalMs, scaleMs);
  return (
    <span
      className={`${styles.bar} ${styles[span.kind]}`}
      data-status={span.status}
      style={{ left: percent(left), width: percent(width) }}
    >
      {firstToken !== undefined && <span className={styles.first} style={{ width: percent(firstToken) }} />}
    </span>
  );
};

export const Timeline = ({
  label,
  spans,
  totalMs,
  scaleMs = totalMs,
  isNarrow = false,
  selected,
  onSelect,
  onOpen,
}: TimelineProps) => {
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set());
  const rows = useMemo(() => rowsOf(spans, folded), [spans, folded]);
  const region = useRef<HTMLDivElement>(null);
  const isTall = !useIsWide(40) || isNarrow;
  const rowPx = isTall ? TALL_ROW_PX : ROW_PX;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => region.current,
    estimateSize: () => rowPx,
    overscan: 12,
  });
  useEffect(() => virtual.measure(), [virtual, rowPx]);

  const tick = tickOf(scaleMs);
  const current = rows.findIndex(({ span }) => span.id === selected);
  const idOf = (id: number): string => `${label.replace(/\W+/g, "-")}-span-${id}`;
  const fold = (id: number, isFolded: boolean): void =>
    setFolded((before) => {
      const next = new Set(before);
      if (isFolded) next.add(id);
      else next.delete(id);
      return next;
    });
  const go = (index: number): void => {
    const row = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    if (row === undefined) return;
    onSelect(row.span.id);
    virtual.scrollToIndex(rows.indexOf(row));
  };
  const moves = new Map<string, (row: Row | undefined) => void>([
    ["ArrowDown", () => go(current + 1)],
    ["ArrowUp", () => go(current - 1)],
    ["PageDown", () => go(current + ROWS_PER_PAGE)],
    ["PageUp", () => go(current - ROWS_PER_PAGE)],
    ["Home", () => go(0)],
    ["End", () => go(rows.length - 1)],
    [
      "ArrowRight",
      (row) => {
        if (row?.hasChildren !== true) return;
        if (folded.has(row.span.id)) fold(row.span.id, false);
        else go(current + 1);
      },
    ],
    [
      "ArrowLeft",
      (row) => {
        if (row === undefined) return;
        if (row.hasChildren && !folded.has(row.span.id)) fold(row.span.id, true);
        else go(parentRow(rows, current));
      },
    ],
    ["Enter", (row) => row !== undefined && onOpen?.(row.span.id)],
  ]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = moves.get(event.key);
    if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(rows[current]);
  };

  const lineOf = (row: Row, index: number, offset: number) => {
    const { span, level, hasChildren } = row;
    const end = endOf(span, totalMs);
    const tokens = span.usage && span.usage.input_tokens + span.usage.output_tokens;
    return (
      <div
        key={span.id}
        id={idOf(span.id)}
        role="row"
        aria-rowindex={index + 1}
        aria-level={level}
        aria-expanded={hasChildren ? !folded.has(span.id) : undefined}
        aria-selected={span.id === selected}
        data-span={span.name}
        className={styles.row}
        style={{ height: rowPx, transform: `translateY(${offset}px)` }}
        onClick={() => {
          onSelect(span.id);
          onOpen?.(span.id);
        }}
      >
        <span
          role="gridcell"
          className={styles.name}
          style={{ "--level": Math.min(level - 1, LEVELS_INDENTED) } as CSSProperties}
        >
          {/* The arrow keys do the same. */}
          <span
            aria-hidden
            className={styles.fold}
            data-open={hasChildren ? !folded.has(span.id) : undefined}
            onClick={(event) => {
              if (!hasChildren) return;
              event.stopPropagation();
              fold(span.id, !folded.has(span.id));
            }}
          >
            {hasChildren && <ChevronRight size={14} strokeWidth={1.75} />}
          </span>
          <KindIcon kind={span.kind} />
          <span className="unseen">{span.kind}</span>
          <span className={styles.text}>{truncate(span.name)}</span>
          <StateIcon status={span.status} />
        </span>
        <span role="gridcell" className={styles.tokens}>
          {tokens === undefined ? "" : `${number.format(tokens)} tok`}
        </span>
        <span role="gridcell" className={styles.duration}>
          {end === undefined ? "–" : durationText(Math.max(0, end - span.start_ms))}
        </span>
        <span
          role="gridcell"
          aria-label={`from ${durationText(span.start_ms)}`}
          className={styles.track}
          style={{ "--tick": percent(scaleMs <= 0 ? 100 : (tick / scaleMs) * 100) } as CSSProperties}
        >
          <BarOf span={span} totalMs={totalMs} scaleMs={scaleMs} />
        </span>
      </div>
    );
  };

  return (
    <div className={styles.timeline} data-tall={isTall || undefined}>
      <div className={styles.head} aria-hidden>
        <span>Span</span>
        <span>Tokens</span>
        <span>Duration</span>
        <Axis scaleMs={scaleMs} tick={tick} />
      </div>
      <div
        ref={region}
        role="treegrid"
        aria-label={label}
        aria-rowcount={rows.length}
        aria-activedescendant={current < 0 ? undefined : idOf(rows[current]?.span.id ?? 0)}
        tabIndex={0}
        className={styles.rows}
        onKeyDown={onKeyDown}
        onFocus={() => current < 0 && rows[0] !== undefined && onSelect(rows[0].span.id)}
      >
        <div role="rowgroup" className={styles.content} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index];
            return row && lineOf(row, index, start);
          })}
        </div>
      </div>
    </div>
  );
};
