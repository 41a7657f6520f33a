import { Activity, Hourglass, MessageCircleReply } from "lucide-react";
import { useState } from "react";
import { Chip } from "../../design/chip.tsx";
import { Dialog } from "../../design/dialog.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { truncate } from "../../design/truncate.ts";
import { useIsWide } from "../../design/use-is-wide.ts";
import { isOver } from "../run.ts";
import { durationText } from "../time.tsx";
import { useNow } from "../use-now.ts";
import { NodeValues } from "./node-values.tsx";
import { attemptMs, originOfError } from "./rows.ts";
import { SpanDetails } from "./span-details.tsx";
import { Timeline } from "./timeline.tsx";
import type { Attempt, Trace } from "./trace.ts";
import styles from "./trace-view.module.css";

/** A run that kills its server may have hundreds. */
const ATTEMPTS_SHOWN = 10;
const WIDE_REM = 64;

const number = new Intl.NumberFormat("en");

const whyEmpty = ({ status }: Trace): string => {
  if (status === "pending") return "The run waits. Its timeline appears here when it starts.";
  if (status === "running")
    return "A server stores what a run does every two seconds; with TRACES=errors or off, it stores nothing yet.";
  return "The server stores traces with TRACES=all (the default), or TRACES=errors for failed runs. It deletes them after a week.";
};

const nameOf = ({ attempt, spans, started_at: startedAt }: Attempt, isLast: boolean): string => {
  if (isLast) return `Attempt ${attempt}`;
  if (startedAt === null) return `Attempt ${attempt}, not stored`;
  return `Attempt ${attempt}, ${spans.some(({ status }) => status === "lost") ? "lost" : "not finished"}`;
};

const Waits = ({ trace: { queue_ms: queued, answered_after_ms: answered } }: { trace: Trace }) => {
  if (!queued && answered === null) return null;
  return (
    <p className={styles.waits}>
      {queued !== null && queued > 0 && (
        <span>
          <Hourglass aria-hidden size={14} strokeWidth={1.75} />
          Queue {durationText(queued)}
        </span>
      )}
      {answered !== null && (
        <span>
          <MessageCircleReply aria-hidden size={14} strokeWidth={1.75} />
          Answered after {durationText(answered)}
        </span>
      )}
    </p>
  );
};

/** The timeline of one attempt, and the details of the chosen span. */
export const TraceView = ({ trace, isNarrow = false }: { trace: Trace; isNarrow?: boolean }) => {
  const isWide = useIsWide(WIDE_REM) && !isNarrow;
  const now = useNow(!isOver(trace));
  const [asked, setAsked] = useState<number>();
  const [selected, setSelected] = useState<number>();
  const [isOpen, setIsOpen] = useState(false);
  const attempt = trace.attempts.find((each) => each.attempt === asked) ?? trace.attempts.at(-1);
  const spans = attempt?.spans ?? [];
  const span =
    spans.find(({ id }) => id === selected) ?? (isWide ? (originOfError(spans) ?? spans[0]) : undefined);
  const totalMs = attempt === undefined ? 0 : attemptMs(trace, attempt, now);
  const shown = trace.attempts.slice(-ATTEMPTS_SHOWN);

  const details = span !== undefined && (
    <SpanDetails key={span.id} span={span} totalMs={totalMs} usage={trace.usage}>
      {span.kind === "node" && span.parent === null && (
        <NodeValues span={span} spans={spans} threadId={trace.thread_id} runId={trace.run_id} />
      )}
    </SpanDetails>
  );
  return (
    <div className={styles.view}>
      <div className={styles.bar}>
        {shown.length > 1 && (
          <div className="row" role="group" aria-label="Attempts">
            {shown.map((each) => (
              <Chip
                key={each.attempt}
                isOn={each === attempt}
                onToggle={() => {
                  setAsked(each.attempt);
                  setSelected(undefined);
                }}
              >
                {nameOf(each, each === trace.attempts.at(-1))}
              </Chip>
            ))}
          </div>
        )}
        <Waits trace={trace} />
      </div>
      {spans.length === 0 || attempt === undefined ? (
        <EmptyState icon={Activity} title={isOver(trace) ? "No timeline was stored" : "No timeline yet"}>
          {whyEmpty(trace)}
        </EmptyState>
      ) : (
        <div className={isWide ? `${styles.panes} ${styles.beside}` : styles.panes}>
          <div className={styles.pane}>
            <Timeline
              key={attempt.attempt}
              label={`Timeline of attempt ${attempt.attempt}`}
              spans={spans}
              totalMs={totalMs}
              isNarrow={isNarrow}
              selected={span?.id}
              onSelect={setSelected}
              onOpen={() => setIsOpen(true)}
            />
            {attempt.dropped_spans > 0 && (
              <p className={styles.dropped}>
                {number.format(attempt.dropped_spans)} spans were not stored, because the trace was full.
              </p>
            )}
          </div>
          {isWide && (
            <aside className={styles.side} aria-label="Span">
              {details}
            </aside>
          )}
        </div>
      )}
      {!isWide && isOpen && span !== undefined && (
        <Dialog title={truncate(span.name)} place="side" onClose={() => setIsOpen(false)}>
          {details}
        </Dialog>
      )}
    </div>
  );
};
