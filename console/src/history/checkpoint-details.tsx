import type { ReactNode } from "react";
import type { ThreadState } from "@langchain/langgraph-sdk";
import { Link } from "wouter";
import type { CheckpointRef } from "../parts/checkpoints.ts";
import { Copy } from "../parts/copy.tsx";
import { JsonView } from "../parts/json.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { withoutOverwrites } from "../parts/without-overwrites.ts";
import { exactTime } from "../parts/time.tsx";
import { Comparison } from "./comparison.tsx";
import { useCheckpoint } from "./use-checkpoint.ts";
import { nodeNames, titleOf, type TreeRow } from "./tree.ts";
import styles from "./history-page.module.css";

const Section = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className={styles.section}>
    <h3>{title}</h3>
    {children}
  </section>
);

type Task = ThreadState["tasks"][number];

const namespaceOf = ({ checkpoint, state }: Task): string | undefined =>
  checkpoint?.checkpoint_ns ?? state?.checkpoint?.checkpoint_ns ?? undefined;

const Tasks = ({ tasks, onOpen }: { tasks: readonly Task[]; onOpen(namespace: string): void }) => (
  <ul className={styles.tasks}>
    {tasks.map((task) => {
      const namespace = namespaceOf(task);
      return (
        <li key={task.id}>
          <div className="row">
            <strong>{task.name}</strong>
            {namespace !== undefined && namespace !== "" && (
              <button type="button" onClick={() => onOpen(namespace)}>
                Open its graph
              </button>
            )}
          </div>
          {task.error !== null && <p className={styles.error}>Failed: {task.error}</p>}
          {task.interrupts.length > 0 && (
            <>
              <p>Waits for an answer:</p>
              <JsonView value={task.interrupts.map(({ value }) => value)} depth={2} />
            </>
          )}
          {task.result != null && (
            <>
              <p className="faint">wrote</p>
              <JsonView value={withoutOverwrites(task.result)} />
            </>
          )}
        </li>
      );
    })}
  </ul>
);

interface CheckpointDetailsProps {
  threadId: string;
  checkpointRef: CheckpointRef;
  rows: readonly TreeRow[];
  /** Undefined: the previous checkpoint. */
  compared: string | undefined;
  onCompare(id: string | undefined): void;
  onOpenNamespace(namespace: string): void;
  actions(state: ThreadState<Record<string, unknown>>): ReactNode;
}

export const CheckpointDetails = (props: CheckpointDetailsProps) => {
  const { threadId, checkpointRef, rows, compared, onCompare, onOpenNamespace, actions } = props;
  const { data: state, error, refetch } = useCheckpoint(threadId, checkpointRef);
  if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />;
  if (state === undefined) return <p className="faint">Loading…</p>;
  const row = rows.find(({ id }) => id === checkpointRef.checkpoint_id);
  const due = state.next.filter((name) => name !== "__start__");
  // The playground continues only from states of the root graph.
  const playgroundPath =
    checkpointRef.checkpoint_ns === "" && checkpointRef.checkpoint_id !== rows[0]?.id
      ? `/threads/${threadId}?checkpoint=${checkpointRef.checkpoint_id}`
      : `/threads/${threadId}`;
  return (
    <section className={styles.details} aria-labelledby="checkpoint-title">
      <div className="row">
        <h2 id="checkpoint-title">{titleOf({ metadata: state.metadata ?? null })}</h2>
        {state.created_at != null && <span className="faint">{exactTime(state.created_at)}</span>}
      </div>
      <div className="row">
        <code className={styles.id}>{checkpointRef.checkpoint_id}</code>
        <Copy text={checkpointRef.checkpoint_id}>Copy id</Copy>
      </div>
      {actions(state)}
      <p className="row">
        {row !== undefined && row.wrote.length > 0 && <span>Wrote: {nodeNames(row.wrote)}.</span>}
        <span>{due.length === 0 ? "No next node." : `Next: ${nodeNames(due)}.`}</span>
        <Link href={playgroundPath}>Continue in the playground</Link>
      </p>
      {state.tasks.length > 0 && (
        <Section title="Next tasks">
          <Tasks tasks={state.tasks} onOpen={onOpenNamespace} />
        </Section>
      )}
      <Section title="State">
        {Object.keys(state.values ?? {}).length === 0 ? (
          <Empty>The state is empty.</Empty>
        ) : (
          <JsonView value={state.values} depth={1} />
        )}
      </Section>
      <Section title="Difference">
        <Comparison
          key={checkpointRef.checkpoint_id}
          threadId={threadId}
          state={state}
          checkpointRef={checkpointRef}
          rows={rows}
          compared={compared}
          onCompare={onCompare}
        />
      </Section>
    </section>
  );
};
