import { useQueryClient } from "@tanstack/react-query";
import { GitCompareArrows, Pause, Play, SearchX } from "lucide-react";
import { useCallback, useRef, useState } from "react";
import { Link, Redirect } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { CopyAs } from "../parts/request-snippets/copy-as.tsx";
import { BulkActions } from "./bulk-actions.tsx";
import { comparePath } from "./compare-dialog.tsx";
import { PAGE, SHOWN_AT_MOST, useLiveRuns, useStableRuns } from "./live-runs.ts";
import { bodyOf, useRunFilter } from "./run-filter.ts";
import { RunFilters } from "./run-filters.tsx";
import { RunTable } from "./run-table.tsx";
import styles from "./runs.module.css";

const countText = (total: number | undefined, shown: number): string => {
  if (total === undefined) return `${shown} shown of many`;
  if (total > shown) return `${shown} shown of ${total.toLocaleString("en")}`;
  return total === 1 ? "1 run" : `${total} runs`;
};

const RunList = ({ filter, change, clear }: Omit<ReturnType<typeof useRunFilter>, "runId">) => {
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
  const select = useCallback((runIds: readonly string[], isSelected: boolean): void => {
    setSelected((before) => {
      const next = new Set(before);
      for (const id of runIds) {
        if (isSelected) next.add(id);
        else next.delete(id);
      }
      return next;
    });
  }, []);
  const chosen = runs.filter(({ run_id }) => selected.has(run_id));
  const [newer, older, ...others] = chosen;
  const isFiltered = Object.values(filter).some((value) => value !== "");

  return (
    <div className="stack">
      <PageHead
        title="Runs"
        actions={
          <>
            <CopyAs request={() => ({ method: "POST", path: "/runs/search", body: bodyOf(filter) })} />
            <button
              type="button"
              className="plain"
              aria-pressed={isPaused}
              onClick={() => setIsPaused(!isPaused)}
            >
              {isPaused ? (
                <Play aria-hidden size={16} strokeWidth={1.75} />
              ) : (
                <Pause aria-hidden size={16} strokeWidth={1.75} />
              )}
              {isPaused ? "Resume" : "Pause"}
            </button>
          </>
        }
      />
      <RunFilters filter={filter} onChange={change} onClear={clear} />
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      <div className={styles.bar}>
        <span role="status" className="faint">
          {isPaused ? "Paused" : data === undefined ? "" : countText(data.total, runs.length)}
        </span>
        <span role="status">
          {waiting > 0 && (
            <button type="button" className="small" onClick={showAll}>
              Show {waiting} new {waiting === 1 ? "run" : "runs"}
            </button>
          )}
        </span>
        {chosen.length > 0 && <BulkActions runs={chosen} onDone={(left) => void refresh(left)} />}
        {newer !== undefined && older !== undefined && others.length === 0 && (
          <Link href={comparePath(older.run_id, newer.run_id)} className="row">
            <GitCompareArrows aria-hidden size={16} strokeWidth={1.75} />
            Compare
          </Link>
        )}
      </div>
      <div ref={list}>
        {isLoading && <Skeleton lines={10} label="Loading runs" />}
        {runs.length > 0 && <RunTable runs={runs} selected={selected} onSelect={select} />}
        {runs.length === 0 && !isLoading && error === null && (
          <EmptyState
            icon={isFiltered ? SearchX : Play}
            title={isFiltered ? "No runs match." : "No runs yet."}
            action={
              isFiltered ? (
                <button type="button" onClick={clear}>
                  Remove the filters
                </button>
              ) : (
                <Link href="/">Start a run in the playground</Link>
              )
            }
          >
            {isFiltered
              ? "Other filters may show more."
              : "Each run of a graph appears here while it goes on."}
          </EmptyState>
        )}
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
    </div>
  );
};

export default function RunsPage() {
  const { runId, ...filters } = useRunFilter();
  if (runId !== undefined) return <Redirect to={`/runs/${encodeURIComponent(runId)}`} replace />;
  return <RunList {...filters} />;
}
