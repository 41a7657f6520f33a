import { History as HistoryIcon } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams, useSearch } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { useHistory } from "../parts/checkpoints.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { useNavigate } from "../parts/use-navigate.ts";
import { CheckpointDetails } from "./checkpoint-details.tsx";
import { CheckpointTree } from "./checkpoint-tree.tsx";
import { RunFrom, RunFromCall, RunProgress } from "./run-from.tsx";
import { EditState } from "./state-editor.tsx";
import { turnsOf } from "./tree.ts";
import { useThread } from "./use-thread.ts";
import styles from "./history-page.module.css";

const useHistoryLocation = (threadId: string) => {
  const navigate = useNavigate();
  const search = new URLSearchParams(useSearch());
  const show = (checkpoint: string | undefined, namespace: string): void => {
    const parts = new URLSearchParams();
    if (namespace !== "") parts.set("namespace", namespace);
    if (checkpoint !== undefined) parts.set("checkpoint", checkpoint);
    const text = parts.toString();
    navigate(`/threads/${threadId}/history${text === "" ? "" : `?${text}`}`, { replace: true });
  };
  return {
    namespace: search.get("namespace") ?? "",
    checkpoint: search.get("checkpoint") ?? undefined,
    show,
  };
};

const Path = ({ namespace, onOpen }: { namespace: string; onOpen(namespace: string): void }) => {
  const segments = namespace.split("|");
  return (
    <nav aria-label="Subgraphs of the thread" className="row">
      <button type="button" className="plain" onClick={() => onOpen("")}>
        The thread
      </button>
      {segments.map((segment, index) => (
        <span key={segment} className="row">
          ›
          {index === segments.length - 1 ? (
            <strong aria-current="true">{segment.split(":", 1)[0]}</strong>
          ) : (
            <button
              type="button"
              className="plain"
              onClick={() => onOpen(segments.slice(0, index + 1).join("|"))}
            >
              {segment.split(":", 1)[0]}
            </button>
          )}
        </span>
      ))}
    </nav>
  );
};

const History = ({ threadId }: { threadId: string }) => {
  const { namespace, checkpoint, show } = useHistoryLocation(threadId);
  const thread = useThread(threadId);
  const [runId, setRunId] = useState<string>();
  const [comparison, setComparison] = useState<{ namespace: string; id: string | undefined }>();
  const compared = comparison?.namespace === namespace ? comparison.id : undefined;
  const history = useHistory(threadId, namespace, thread.status === "busy");
  const turns = useMemo(() => turnsOf(history.states ?? []), [history.states]);
  const rows = useMemo(() => turns.flatMap((turn) => turn.rows), [turns]);
  const selected = checkpoint ?? rows[0]?.id;
  const checkpointRef =
    selected === undefined ? undefined : { checkpoint_id: selected, checkpoint_ns: namespace };
  /** New checkpoints must not replace the one that the user edits. */
  const pinCheckpoint = (): void => show(selected, namespace);
  const showStarted = (id: string): void => {
    setRunId(id);
    show(undefined, "");
    thread.refetch();
  };
  return (
    <>
      <PageHead
        title="Time travel"
        actions={
          <>
            <Link href={`/threads/${threadId}`}>Playground</Link>
            {thread.assistantId !== undefined && (
              <Link href={`/graph/${thread.assistantId}?thread=${threadId}`}>Graph</Link>
            )}
          </>
        }
      >
        {thread.status !== undefined && <Status status={thread.status} />}
        <code className={`faint ${styles.id}`}>{threadId}</code>
      </PageHead>
      <ErrorNotice error={thread.error ?? history.error} onRetry={history.retry} />
      {namespace !== "" && <Path namespace={namespace} onOpen={(other) => show(undefined, other)} />}
      {runId !== undefined && <RunProgress key={runId} threadId={threadId} runId={runId} />}
      {history.states !== undefined && rows.length === 0 && (
        <EmptyState icon={HistoryIcon} title="No checkpoints">
          {namespace === ""
            ? "This thread has no checkpoints. No run has started in it."
            : "This graph has no checkpoints in the thread."}
        </EmptyState>
      )}
      {history.states === undefined && history.error === null && <Skeleton lines={8} />}
      {rows.length > 0 && (
        <div className={styles.panes}>
          <div className="stack">
            <CheckpointTree
              threadId={threadId}
              turns={turns}
              selected={selected}
              compared={compared}
              onSelect={(id) => show(id, namespace)}
            />
            <div className="row">
              <span className="faint" role="status">
                {rows.length === 1 ? "1 checkpoint" : `${rows.length} checkpoints`}
                {history.hasOlder ? ", and older ones" : ""}
              </span>
              {history.hasOlder && (
                <button type="button" disabled={history.isLoadingOlder} onClick={history.loadOlder}>
                  More
                </button>
              )}
            </div>
          </div>
          {checkpointRef !== undefined && (
            <CheckpointDetails
              key={`${namespace} ${checkpointRef.checkpoint_id}`}
              threadId={threadId}
              checkpointRef={checkpointRef}
              rows={rows}
              compared={compared}
              onCompare={(id) => setComparison({ namespace, id })}
              onOpenNamespace={(inner) => show(undefined, inner)}
              actions={(state) => (
                <div className="row">
                  {namespace === "" ? (
                    <RunFrom
                      threadId={threadId}
                      assistantId={thread.assistantId}
                      checkpointRef={checkpointRef}
                      isDue={state.next.length > 0}
                      onOpen={pinCheckpoint}
                      onStarted={showStarted}
                    />
                  ) : (
                    <RunFromCall
                      threadId={threadId}
                      assistantId={thread.assistantId}
                      checkpointRef={checkpointRef}
                      around={state.checkpoint.checkpoint_map}
                      onStarted={showStarted}
                    />
                  )}
                  <EditState
                    threadId={threadId}
                    assistantId={thread.assistantId}
                    checkpointRef={checkpointRef}
                    state={state}
                    onOpen={pinCheckpoint}
                    onStored={(id) => show(id, namespace)}
                  />
                </div>
              )}
            />
          )}
        </div>
      )}
    </>
  );
};

export default function HistoryPage() {
  const { threadId = "" } = useParams<{ threadId: string }>();
  return (
    <div className={styles.page}>
      <History key={threadId} threadId={threadId} />
    </div>
  );
}
