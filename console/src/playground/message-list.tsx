import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { MessageView, type Alternatives, type MessageActions, type MessageContext } from "./message-view.tsx";
import { rowsOf, type Row, type ShownMessage } from "./messages.ts";
import styles from "./message-list.module.css";

interface MessageListProps {
  messages: readonly ShownMessage[];
  isRunning: boolean;
  /** By message id. */
  alternatives: ReadonlyMap<string, Alternatives>;
  actions: MessageActions;
  context: MessageContext;
}

const ESTIMATED_PIXELS = 110;
/** Closer to the end, the list follows new messages. */
const AT_END_PIXELS = 60;

/**
 * Renders only messages near the viewport, because a thread may have thousands. The end stays in view unless
 * the user scrolls away.
 */
export const MessageList = memo(
  ({ messages, isRunning, alternatives, actions, context }: MessageListProps) => {
    const scroller = useRef<HTMLDivElement>(null);
    const before = useRef<Row[]>([]);
    const rows = rowsOf(messages, before.current);
    before.current = rows;
    const [isAtEnd, setIsAtEnd] = useState(true);
    const list = useVirtualizer({
      count: rows.length,
      getScrollElement: () => scroller.current,
      estimateSize: () => ESTIMATED_PIXELS,
      getItemKey: (index) => rows[index]?.key ?? index,
      overscan: 6,
      anchorTo: "end",
      followOnAppend: true,
      scrollEndThreshold: AT_END_PIXELS,
      paddingStart: 8,
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
    return (
      <div className={styles.frame}>
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
              return (
                <article
                  key={key}
                  ref={list.measureElement}
                  data-index={index}
                  aria-posinset={index + 1}
                  aria-setsize={rows.length}
                  className={styles.item}
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <MessageView
                    row={row}
                    isGrowing={isRunning && index === rows.length - 1}
                    isRunning={isRunning}
                    alternatives={alternatives.get(row.message.id ?? "")}
                    actions={actions}
                    context={context}
                  />
                </article>
              );
            })}
          </div>
        </div>
        {!isAtEnd && (
          <button type="button" className={styles.toEnd} onClick={() => list.scrollToEnd()}>
            Jump to newest ↓
          </button>
        )}
      </div>
    );
  },
);
MessageList.displayName = "MessageList";
