import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { useDrawing } from "../parts/assistants.ts";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { Canvas } from "./canvas.tsx";
import { Choices } from "./choices.tsx";
import { drawingOf, groupIdsOf, NODES_DRAWN_AT_MOST } from "./drawing.ts";
import { GraphText } from "./graph-text.tsx";
import { layOut } from "./layout.ts";
import { NodeDetails } from "./node-details.tsx";
import { useExecutions } from "./use-executions.ts";
import styles from "./graph-page.module.css";

const toggled = (set: ReadonlySet<string>, item: string): ReadonlySet<string> => {
  const changed = new Set(set);
  if (!changed.delete(item)) changed.add(item);
  return changed;
};

const NO_GROUPS: ReadonlySet<string> = new Set();

const Graph = ({ assistantId, threadId }: { assistantId: string; threadId: string | undefined }) => {
  const graph = useDrawing(assistantId);
  const groups = useMemo(() => (graph.data === undefined ? [] : groupIdsOf(graph.data)), [graph.data]);
  const isLarge = (graph.data?.nodes.length ?? 0) > NODES_DRAWN_AT_MOST;
  /** Undefined until the user chooses: then only a large graph is closed. */
  const [chosen, setClosed] = useState<ReadonlySet<string>>();
  const closed = useMemo(() => chosen ?? (isLarge ? new Set(groups) : NO_GROUPS), [chosen, groups, isLarge]);
  const [selected, setSelected] = useState<string>();
  const drawing = useMemo(
    () => (graph.data === undefined ? undefined : drawingOf(graph.data, closed)),
    [graph.data, closed],
  );
  const { executions, activity, isRunning, hasOlder, loadOlder, error, retry } = useExecutions(
    threadId,
    assistantId,
    groups,
  );
  const hasThread = threadId !== undefined;
  const isDrawn = drawing !== undefined && drawing.nodes.length <= NODES_DRAWN_AT_MOST;
  const layout = useQuery({
    queryKey: ["assistants", "layout", assistantId, [...closed].sort(), hasThread, drawing],
    queryFn: () => {
      if (drawing === undefined) throw new Error("There is nothing to lay out.");
      return layOut(drawing, hasThread);
    },
    enabled: isDrawn,
    staleTime: Infinity,
    placeholderData: (before, query) => (query?.queryKey[2] === assistantId ? before : undefined),
  });

  if (graph.error !== null) return <ErrorNotice error={graph.error} onRetry={() => void graph.refetch()} />;
  if (drawing === undefined) return <p className="faint">Loading…</p>;
  const shownActivity = hasThread ? activity : undefined;
  return (
    <>
      <ErrorNotice error={error} onRetry={retry} />
      <ErrorNotice error={layout.error} />
      {hasThread && (
        <div className="row">
          <p role="status">{isRunning ? "A run is in progress." : "No run is in progress."}</p>
          {hasOlder && (
            <button type="button" className="plain" onClick={loadOlder}>
              Include older steps
            </button>
          )}
          <span className={styles.links}>
            <Link href={`/threads/${threadId}`}>Playground</Link>
            <Link href={`/threads/${threadId}/history`}>Time travel</Link>
          </span>
        </div>
      )}
      <div className={selected === undefined ? styles.alone : styles.beside}>
        {isDrawn ? (
          layout.data && (
            <Canvas
              drawing={drawing}
              layout={layout.data}
              activity={shownActivity}
              selected={selected}
              onSelect={setSelected}
              onToggle={(group) => setClosed(toggled(closed, group))}
            />
          )
        ) : (
          <Empty>
            This graph has {drawing.nodes.length} nodes, too many for a drawing. The list below shows them.
          </Empty>
        )}
        {selected !== undefined && (
          <NodeDetails
            key={`${selected} ${threadId ?? ""}`}
            node={selected}
            threadId={threadId}
            executions={executions}
            onClose={() => setSelected(undefined)}
          />
        )}
      </div>
      <details>
        <summary>Graph as a list</summary>
        <GraphText drawing={drawing} activity={shownActivity} onSelect={setSelected} />
      </details>
    </>
  );
};

/** The assistant of the address, else of the thread, else the first one. */
const useChosenAssistant = (threadId: string | undefined) => {
  const { client } = useConnection();
  const { assistantId: named } = useParams<{ assistantId?: string }>();
  return useQuery({
    queryKey: ["assistants", "chosen", named ?? null, named === undefined ? (threadId ?? null) : null],
    queryFn: async (): Promise<string | null> => {
      if (named !== undefined) return (await client.assistants.get(named)).assistant_id;
      if (threadId !== undefined) {
        const { metadata } = await client.threads.get(threadId);
        const ofThread: unknown = metadata?.["assistant_id"];
        return typeof ofThread === "string" ? ofThread : null;
      }
      const [first] = await client.assistants.search({ limit: 1, sortBy: "name", sortOrder: "asc" });
      return first?.assistant_id ?? null;
    },
  });
};

export default function GraphPage() {
  const threadId = new URLSearchParams(useSearch()).get("thread") ?? undefined;
  const [, navigate] = useLocation();
  const { data: chosen, error } = useChosenAssistant(threadId);
  const assistantId = chosen ?? undefined;
  return (
    <div className={styles.page}>
      <div className="row">
        <h1>Graph</h1>
        <Choices
          assistantId={assistantId}
          threadId={threadId}
          onChoose={({ assistant, thread }) =>
            navigate(
              `/graph/${encodeURIComponent(assistant)}${thread === undefined ? "" : `?thread=${encodeURIComponent(thread)}`}`,
            )
          }
        />
      </div>
      <ErrorNotice error={error} />
      {assistantId === undefined ? (
        chosen === null && <Empty>No assistant is selected. Choose one.</Empty>
      ) : (
        <Graph key={assistantId} assistantId={assistantId} threadId={threadId} />
      )}
    </div>
  );
}
