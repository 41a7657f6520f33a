import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { PAGE, SHOWN_AT_MOST, useLiveRuns, useStableRuns } from "./live-runs.ts";
import { RunDetail } from "./run-detail.tsx";
import { useRunFilter } from "./run-filter.ts";
import { RunFilters } from "./run-filters.tsx";
import { RunTable } from "./run-table.tsx";
import { BulkActions } from "./bulk-actions.tsx";
import styles from "./runs.module.css";

const countText = (total: number | undefined, shown: number): string => {
  if (total === undefined) return `${shown} shown of many`;
  if (total > shown) return `${shown} shown of ${total.toLocaleString("en")}`;
  return total === 1 ? "1 run" : `${total} runs`;
};

export default function RunsPage() {
  const { filter, runId, change, pathOf, clear } = useRunFilter();
  const queries = useQueryClient();
  const [isPaused, setIsPaused] = useState(false);
  const [limit, setLimit] = useState(PAGE);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const list = useRef<HTMLDivElement>(null);
  const { data, error, isLoading, isPlaceholderData, refetch } = useLiveRuns(filter, { limit, isPaused });

  const isRead = (): boolean => {
    const element = list.current;
    if (element === null) return false;
    return (
      selected.size > 0 ||
      (element.closest("main")?.scrollTop ?? 0) > 0 ||
      element.matches(":hover") ||
      element.contains(document.activeElement)
    );
  };
  const key = JSON.stringify([filter, limit]);
  const { runs, waiting, showAll } = useStableRuns(data, { key, isPrevious: isPlaceholderData, isRead });

  const refresh = async (left: readonly string[] = []): Promise<void> => {
    setSelected(new Set(left));
    await queries.invalidateQueries({ queryKey: ["runs"] });
  };
  const select = (runIds: readonly string[], isSelected: boolean): void => {
    setSelected((before) => {
      const next = new Set(before);
      for (const id of runIds) {
        if (isSelected) next.add(id);
        else next.delete(id);
      }
      return next;
    });
  };
  const chosen = runs.filter(({ run_id }) => selected.has(run_id));

  return (
    <div className="stack">
      <div className="row">
        <h1>Runs</h1>
        <button type="button" aria-pressed={isPaused} onClick={() => setIsPaused(!isPaused)}>
          {isPaused ? "Resume" : "Pause"}
        </button>
      </div>
      <RunFilters filter={filter} onChange={change} onClear={clear} />
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      <div className={styles.bar}>
        <span role="status" className="faint">
          {isPaused ? "Paused" : data === undefined ? "" : countText(data.total, runs.length)}
        </span>
        <span role="status">
          {waiting > 0 && (
            <button type="button" onClick={showAll}>
              Show {waiting} new {waiting === 1 ? "run" : "runs"}
            </button>
          )}
        </span>
        {chosen.length > 0 && <BulkActions runs={chosen} onDone={(left) => void refresh(left)} />}
      </div>
      <div ref={list}>
        {runs.length > 0 && <RunTable runs={runs} selected={selected} onSelect={select} pathOf={pathOf} />}
        {runs.length === 0 && !isLoading && error === null && <Empty>No runs match.</Empty>}
      </div>
      {data?.hasMore === true && runs.length > 0 && limit < SHOWN_AT_MOST && (
        <div>
          <button type="button" onClick={() => setLimit(Math.min(SHOWN_AT_MOST, limit + PAGE))}>
            Show more
          </button>
        </div>
      )}
      {data?.hasMore === true && limit >= SHOWN_AT_MOST && (
        <p className="faint">There are more runs. Narrow the filter.</p>
      )}
      {runId !== undefined && (
        <RunDetail
          key={runId}
          runId={runId}
          onClose={() => change({ run: "" })}
          onDeleted={() => {
            change({ run: "" });
            void refresh();
          }}
        />
      )}
    </div>
  );
}
