import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { JsonView } from "../json.tsx";
import { Empty, ErrorNotice } from "../notice.tsx";
import { withoutOverwrites } from "../without-overwrites.ts";
import { durationText, Time } from "../time.tsx";
import { useConnection } from "../../server/connection.tsx";
import type { Execution } from "./activity.ts";
import styles from "./graph-view.module.css";

const SHOWN_FIRST = 10;

const OUTCOMES: Record<Execution["outcome"], string> = {
  running: "running",
  done: "finished",
  failed: "failed",
  waiting: "waits for an answer",
  stopped: "not finished",
};

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <section>
    <h4 className={styles.part}>{title}</h4>
    {children}
  </section>
);

const StateBefore = ({ threadId, execution }: { threadId: string; execution: Execution }) => {
  const { client } = useConnection();
  const { checkpoint } = execution;
  const before = useQuery({
    queryKey: ["threads", threadId, "state", checkpoint?.checkpoint_ns, checkpoint?.checkpoint_id],
    queryFn: () =>
      client.threads.getState(threadId, {
        thread_id: threadId,
        checkpoint_ns: checkpoint?.checkpoint_ns ?? "",
        checkpoint_id: checkpoint?.checkpoint_id,
        checkpoint_map: null,
      }),
    enabled: checkpoint !== undefined,
    staleTime: Infinity,
    // A state may have 30 MB.
    gcTime: 0,
  });
  if (checkpoint === undefined) return <Empty>The output is stored when the step ends.</Empty>;
  if (before.error !== null)
    return <ErrorNotice error={before.error} onRetry={() => void before.refetch()} />;
  return before.data === undefined ? (
    <p className="faint">Loading…</p>
  ) : (
    <JsonView value={before.data.values} />
  );
};

const timeText = ({ durationMs, isExact }: Execution): string =>
  durationMs === undefined ? "" : ` · ${isExact ? "" : "up to "}${durationText(durationMs)}`;

const ExecutionView = ({
  threadId,
  execution,
  isFirst,
}: {
  threadId: string;
  execution: Execution;
  isFirst: boolean;
}) => {
  const [isOpen, setIsOpen] = useState(isFirst);
  const { outcome, step, startedAt, input, result, error, interrupts, checkpoint } = execution;
  return (
    <details
      className={styles.execution}
      data-outcome={outcome}
      open={isOpen}
      onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}
    >
      <summary>
        <strong>{OUTCOMES[outcome]}</strong>
        {timeText(execution)}
        {step !== undefined && ` · step ${step + 1}`}
        {startedAt !== undefined && (
          <>
            {" · "}
            <Time iso={new Date(startedAt).toISOString()} />
          </>
        )}
      </summary>
      {isOpen && (
        <div className="stack">
          <Part
            title={
              input === undefined ? "Input: the state before the step" : "Input: values sent to the node"
            }
          >
            {input === undefined ? (
              <StateBefore threadId={threadId} execution={execution} />
            ) : (
              <JsonView value={input} />
            )}
          </Part>
          {error !== undefined && (
            <Part title="Error">
              <p className={styles.error}>{error}</p>
            </Part>
          )}
          {interrupts.length > 0 && (
            <Part title="Interrupt">
              <JsonView value={interrupts.map(({ value }) => value)} />
            </Part>
          )}
          {outcome !== "running" && error === undefined && (
            <Part title="Output">
              {result == null ? (
                <Empty>Nothing.</Empty>
              ) : (
                <JsonView value={withoutOverwrites(result)} depth={2} />
              )}
            </Part>
          )}
          {checkpoint?.checkpoint_ns === "" && (
            <p>
              <Link href={`/threads/${threadId}/history?checkpoint=${checkpoint.checkpoint_id}`}>
                The state before, in time travel
              </Link>
            </p>
          )}
        </div>
      )}
    </details>
  );
};

const titleOf = (own: readonly Execution[]): string => {
  if (own.length > 1) return `Ran ${own.length} times, newest first`;
  return own[0]?.outcome === "running" ? "First run in progress" : "Ran once";
};

export const NodeDetails = ({
  node,
  threadId,
  executions,
  onClose,
}: {
  node: string;
  threadId: string | undefined;
  executions: readonly Execution[];
  onClose(): void;
}) => {
  const [shown, setShown] = useState(SHOWN_FIRST);
  const section = useRef<HTMLElement>(null);
  // On a phone it is below the drawing.
  useEffect(() => {
    // Newer browsers return a promise, which is no cleanup function.
    void section.current?.scrollIntoView({ block: "nearest" });
  }, []);
  const own = executions.filter((execution) => execution.node === node);
  return (
    <section ref={section} className={styles.details} aria-labelledby="node-title">
      <div className="row">
        <h2 id="node-title" className={styles.title}>
          {node.replaceAll(":", " › ")}
        </h2>
        <button type="button" className="plain" style={{ marginLeft: "auto" }} onClick={onClose}>
          Close
        </button>
      </div>
      {threadId === undefined ? (
        <Empty>Select a thread to see the input and output of this node.</Empty>
      ) : own.length === 0 ? (
        <Empty>This node has not run in the loaded part of this thread.</Empty>
      ) : (
        <>
          <h3>{titleOf(own)}</h3>
          {own.slice(0, shown).map((execution, index) => (
            <ExecutionView
              key={execution.taskId}
              threadId={threadId}
              execution={execution}
              isFirst={index === 0}
            />
          ))}
          {own.length > shown && (
            <button type="button" onClick={() => setShown(shown + SHOWN_FIRST)}>
              {own.length - shown} more
            </button>
          )}
        </>
      )}
    </section>
  );
};
