import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Skeleton } from "../../design/skeleton.tsx";
import { JsonView } from "../json.tsx";
import { ErrorNotice } from "../notice.tsx";
import { withoutOverwrites } from "../without-overwrites.ts";
import { useConnection } from "../../server/connection.tsx";
import type { Span } from "./trace.ts";
import styles from "./timeline.module.css";

const STEPS_AT_MOST = 100;

interface StoredTask {
  name?: unknown;
  result?: unknown;
  /** Begins with `__pregel_push` if a `Send` started the node, with an input of its own. */
  path?: unknown;
}

interface StoredState {
  checkpoint?: { checkpoint_id?: string } | null;
  tasks?: StoredTask[];
}

/** The execution with the same number: undefined if the checkpoints have other executions than the trace. */
export const taskOf = <Task extends StoredTask>(
  span: Span,
  spans: readonly Span[],
  tasks: readonly Task[],
): Task | undefined => {
  const executions = spans
    .filter(({ kind, parent, name }) => kind === "node" && parent === null && name === span.name)
    .sort((one, other) => one.start_ms - other.start_ms || one.id - other.id);
  const stored = tasks.filter(({ name }) => name === span.name);
  return executions.length === stored.length ? stored[executions.indexOf(span)] : undefined;
};

interface NodeValuesProps {
  span: Span;
  spans: readonly Span[];
  threadId: string;
  runId: string;
}

/** Shows the input and the output of a node of the root graph. Both come from the run's checkpoints. */
export const NodeValues = ({ span, spans, threadId, runId }: NodeValuesProps) => {
  const { request } = useConnection();
  const { data: tasks = [] } = useQuery({
    queryKey: ["runs", "tasks", runId, span.end_ms === null ? undefined : spans.length],
    queryFn: async () => {
      const states = await request<StoredState[]>("POST", `/threads/${threadId}/history`, {
        limit: STEPS_AT_MOST,
        metadata: { run_id: runId },
        select: ["checkpoint", "tasks"],
      });
      return states
        .reverse()
        .flatMap(({ checkpoint, tasks: started = [] }) =>
          started.map((task) => ({ ...task, checkpointId: checkpoint?.checkpoint_id })),
        );
    },
    retry: false,
    staleTime: 60_000,
  });
  const task = taskOf(span, spans, tasks);
  if (task === undefined) return null;
  const isSent = Array.isArray(task.path) && task.path[0] === "__pregel_push";
  return (
    <>
      {task.checkpointId !== undefined && !isSent && (
        <NodeInput key={task.checkpointId} threadId={threadId} checkpointId={task.checkpointId} />
      )}
      {task.result != null && <Value name="Output" value={withoutOverwrites(task.result)} depth={2} />}
    </>
  );
};

/** The state that the node read, requested when somebody wants to see it. */
const NodeInput = ({ threadId, checkpointId }: { threadId: string; checkpointId: string }) => {
  const { request } = useConnection();
  const [isOpen, setIsOpen] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ["threads", threadId, "input", checkpointId],
    queryFn: () =>
      request<{ values: unknown }>("GET", `/threads/${threadId}/state/${checkpointId}?select=values`),
    enabled: isOpen,
    staleTime: Infinity,
    // A state may have 30 MB.
    gcTime: 0,
  });
  if (!isOpen)
    return (
      <div>
        <button type="button" className="small" onClick={() => setIsOpen(true)}>
          Show the input
        </button>
      </div>
    );
  return (
    <>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {data === undefined ? (
        error === null && <Skeleton lines={3} label="Loading the input" />
      ) : (
        <Value name="Input" value={data.values} depth={1} />
      )}
    </>
  );
};

const Value = ({ name, value, depth }: { name: string; value: unknown; depth: number }) => (
  <section className={styles.value} aria-label={name}>
    <h3>{name}</h3>
    <div tabIndex={0} role="group" aria-label={`${name} as JSON`}>
      <JsonView value={value} depth={depth} />
    </div>
  </section>
);
