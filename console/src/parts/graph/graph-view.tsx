import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Skeleton } from "../../design/skeleton.tsx";
import { useDrawing } from "../assistants.ts";
import { Empty, ErrorNotice } from "../notice.tsx";
import { Canvas } from "./canvas.tsx";
import { drawingOf, groupIdsOf, NODES_DRAWN_AT_MOST } from "./drawing.ts";
import { GraphText } from "./graph-text.tsx";
import { layOut } from "./layout.ts";
import { NodeDetails } from "./node-details.tsx";
import { useExecutions } from "./use-executions.ts";
import styles from "./graph-view.module.css";

const toggled = (set: ReadonlySet<string>, item: string): ReadonlySet<string> => {
  const changed = new Set(set);
  if (!changed.delete(item)) changed.add(item);
  return changed;
};

const NO_GROUPS: ReadonlySet<string> = new Set();

interface GraphViewProps {
  assistantId: string;
  /** Whose executions are shown in the drawing. */
  threadId: string | undefined;
  /** Whether the place is as narrow as a panel. */
  isNarrow?: boolean;
}

/** The drawing of a graph, and the executions of the node that the user selects. */
export const GraphView = ({ assistantId, threadId, isNarrow = false }: GraphViewProps) => {
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
  const { executions, activity, isLoading, isRunning, hasOlder, loadOlder, error, retry } = useExecutions(
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
  if (drawing === undefined) return <Skeleton lines={6} />;
  const shownActivity = hasThread ? activity : undefined;
  return (
    <div className={isNarrow ? `${styles.view} ${styles.narrow}` : styles.view}>
      <ErrorNotice error={error} onRetry={retry} />
      <ErrorNotice error={layout.error} />
      {hasThread && (
        <div className="row">
          <p role="status" className="faint">
            {isLoading
              ? "Loading the steps…"
              : isRunning
                ? "A run is in progress."
                : "No run is in progress."}
          </p>
          {hasOlder && (
            <button type="button" className="plain" onClick={loadOlder}>
              Include older steps
            </button>
          )}
        </div>
      )}
      <div className={selected === undefined || isNarrow ? styles.alone : styles.beside}>
        {isDrawn ? (
          layout.data && (
            <Canvas
              drawing={drawing}
              layout={layout.data}
              activity={shownActivity}
              isLoading={isLoading}
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
    </div>
  );
};
