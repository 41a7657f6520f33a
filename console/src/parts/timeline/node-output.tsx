import { useQuery } from "@tanstack/react-query";
import { JsonView } from "../json.tsx";
import { withoutOverwrites } from "../without-overwrites.ts";
import { useConnection } from "../../server/connection.tsx";
import type { Span } from "./trace.ts";
import styles from "./timeline.module.css";

const STEPS_AT_MOST = 100;

interface StoredTask {
  name?: unknown;
  result?: unknown;
}

/** The execution with the same number: undefined if the checkpoints have other executions than the trace. */
export const taskOf = (span: Span, spans: readonly Span[], tasks: readonly StoredTask[]) => {
  const executions = spans
    .filter(({ kind, parent, name }) => kind === "node" && parent === null && name === span.name)
    .sort((one, other) => one.start_ms - other.start_ms || one.id - other.id);
  const stored = tasks.filter(({ name }) => name === span.name);
  return executions.length === stored.length ? stored[executions.indexOf(span)] : undefined;
};

interface NodeOutputProps {
  span: Span;
  spans: readonly Span[];
  threadId: string;
  runId: string;
}

/** What a node of the root graph wrote, from the run's checkpoints. */
export const NodeOutput = ({ span, spans, threadId, runId }: NodeOutputProps) => {
  const { request } = useConnection();
  const { data: tasks = [] } = useQuery({
    queryKey: ["runs", "tasks", runId, span.end_ms === null ? undefined : spans.length],
    queryFn: async () => {
      const states = await request<{ tasks?: StoredTask[] }[]>("POST", `/threads/${threadId}/history`, {
        limit: STEPS_AT_MOST,
        metadata: { run_id: runId },
        select: ["tasks"],
      });
      return states.reverse().flatMap((state) => state.tasks ?? []);
    },
    retry: false,
    staleTime: 60_000,
  });
  const result = taskOf(span, spans, tasks)?.result;
  if (result == null) return null;
  return (
    <section className={styles.value} aria-label="Output">
      <h3>Output</h3>
      <div tabIndex={0} role="group" aria-label="Output as JSON">
        <JsonView value={withoutOverwrites(result)} depth={2} />
      </div>
    </section>
  );
};
