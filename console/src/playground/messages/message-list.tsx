import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { figuresText, useRunTimes } from "./figures.ts";
import { FindBar } from "./find-bar.tsx";
import type { Alternatives, MessageActions } from "./message-actions.ts";
import { MessageView, type MessageContext } from "./message-view.tsx";
import { endsTurn, rowsOf, typeOf, type Row, type ShownMessage } from "./messages.ts";
import { useToolTimes } from "./tool-times.ts";
import styles from "./message-list.module.css";

interface MessageListProps {
  messages: readonly ShownMessage[];
  isRunning: boolean;
  /** By message id. */
  alternatives: ReadonlyMap<string, Alternatives>;
  /** By message id. */
  runOf: ReadonlyMap<string, string>;
  /** Ids of answers whose text was kept when the user stopped the run. */
  stopped: ReadonlySet<string>;
  actions: MessageActions;
  context: MessageContext;
}

const ESTIMATED_PIXELS = 110;
/** Closer to the end, the list follows new messages. */
const AT_END_PIXELS = 60;

const idsOf = ({ message, more }: Row): string[] =>
  [message, ...more].flatMap(({ id }) => (id === undefined ? [] : [id]));

/**
 * Renders only messages near the viewport, because a thread may have thousands. The end stays in view unless
 * the user scrolls away.
 */
export const MessageList = memo((props: MessageListProps) => {
  const { messages, isRunning, alternatives, runOf, stopped, actions, context } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const before = useRef<Row[]>([]);
  const rows = rowsOf(messages, before.current, alternatives);
  before.current = rows;
  const durationOf = useToolTimes(messages, isRunning);
  const times = useRunTimes(context.threadId, runOf);
  const [isAtEnd, setIsAtEnd] = useState(true);
  const [foundKey, setFoundKey] = useState<string>();
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ESTIMATED_PIXELS,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 6,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: AT_END_PIXELS,
    paddingStart: 16,
    paddingEnd: 8,
    // Tokens arrive as fast as frames, so measuring may wait for the next frame.
    useFlushSync: false,
  });
  const isEmpty = rows.length === 0;
  useLayoutEffect(() => {
    if (!isEmpty) list.scrollToEnd();
  }, [isEmpty, list]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const update = (): void =>
      setIsAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < AT_END_PIXELS);
    element.addEventListener("scroll", update, { passive: true });
    return () => element.removeEventListener("scroll", update);
  }, []);
  const runIn = (row: Row): string | undefined => {
    for (const id of idsOf(row)) if (runOf.has(id)) return runOf.get(id);
    return undefined;
  };
  return (
    <div className={styles.frame}>
      <FindBar
        rows={rows}
        scroller={scroller}
        onShow={(index) => {
          setFoundKey(rows[index]?.key);
          list.scrollToIndex(index, { align: "center" });
        }}
        onClose={() => setFoundKey(undefined)}
      />
      <div
        ref={scroller}
        className={styles.scroller}
        role="log"
        aria-label="Messages"
        // Messages that appear by scrolling are not new.
        aria-live={isAtEnd ? "polite" : "off"}
        aria-busy={isRunning}
        tabIndex={0}
      >
        <div className={styles.all} style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map(({ key, index, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const isGrowing = isRunning && index === rows.length - 1;
            const isAnswer = !isGrowing && typeOf(row.message) === "ai" && endsTurn(rows, index);
            const runId = isAnswer ? runIn(row) : undefined;
            const figures = isAnswer
              ? figuresText(rows, index, runId === undefined ? undefined : times.get(runId))
              : undefined;
            return (
              <article
                key={key}
                ref={list.measureElement}
                data-index={index}
                data-found={row.key === foundKey}
                aria-posinset={index + 1}
                aria-setsize={rows.length}
                className={styles.item}
                style={{ transform: `translateY(${start}px)` }}
              >
                <MessageView
                  row={row}
                  isGrowing={isGrowing}
                  isRunning={isRunning}
                  isStopped={stopped.size > 0 && idsOf(row).some((id) => stopped.has(id))}
                  figures={figures ?? (runId === undefined ? undefined : "Run")}
                  runId={runId}
                  alternatives={alternatives.get(row.message.id ?? "")}
                  actions={actions}
                  context={context}
                  durationOf={durationOf}
                />
              </article>
            );
          })}
        </div>
      </div>
      {!isAtEnd && (
        <button type="button" className={styles.toEnd} onClick={() => list.scrollToEnd()}>
          <ArrowDown aria-hidden size={14} />
          Jump to newest
        </button>
      )}
    </div>
  );
});
MessageList.displayName = "MessageList";
