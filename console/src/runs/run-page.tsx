import { FileQuestion } from "lucide-react";
import { Link, useParams, useSearchParams } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { Tabs, type Tab } from "../design/tabs.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { errorLine } from "../parts/run.ts";
import { TraceView } from "../parts/timeline/trace-view.tsx";
import { sumOf } from "../parts/timeline/trace.ts";
import { useCurrency, useTrace } from "../parts/timeline/use-trace.ts";
import { statusOf } from "../server/api-error.ts";
import { RunError } from "./run-error.tsx";
import { useFacts } from "./run-facts.ts";
import { RunHead } from "./run-head.tsx";
import { RunInput } from "./run-input.tsx";
import { useRun, type RunDetails } from "./run-record.ts";
import { RunWebhook } from "./run-webhook.tsx";
import styles from "./run-page.module.css";

const RunBody = ({ run, trace }: { run: RunDetails; trace: ReturnType<typeof useTrace> }) => {
  const [params, setParams] = useSearchParams();
  const hasCost = trace.data !== undefined && sumOf(trace.data.usage)?.cost != null;
  const facts = useFacts(run, trace.data, useCurrency(hasCost));
  const tabs: Tab[] = [
    {
      id: "timeline",
      label: "Timeline",
      content: () => (
        <>
          {trace.error !== null && statusOf(trace.error) !== 404 && (
            <div className={styles.pane}>
              <ErrorNotice error={trace.error} onRetry={() => void trace.refetch()} />
            </div>
          )}
          {trace.isPending && (
            <div className={styles.pane}>
              <Skeleton lines={6} label="Loading the timeline" />
            </div>
          )}
          {statusOf(trace.error) === 404 && (
            <EmptyState icon={FileQuestion} title="No timeline">
              This server stores no traces, or the run was deleted.
            </EmptyState>
          )}
          {trace.data !== undefined && <TraceView trace={trace.data} />}
        </>
      ),
    },
    { id: "input", label: "Input and output", content: () => <RunInput run={run} /> },
    ...(run.error == null
      ? []
      : [{ id: "error", label: "Error", content: () => <RunError run={run} trace={trace.data} /> }]),
    ...(typeof run.kwargs?.webhook === "string"
      ? [{ id: "webhook", label: "Webhook", content: () => <RunWebhook runId={run.run_id} /> }]
      : []),
  ];
  const asked = params.get("tab");
  const chosen = tabs.find(({ id }) => id === asked)?.id ?? "timeline";
  return (
    <>
      <RunHead run={run} />
      <dl className={styles.facts}>
        {facts.map(({ name, text }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={text}>{text}</dd>
          </div>
        ))}
      </dl>
      {run.error != null && chosen !== "error" && <p className={styles.fault}>{errorLine(run)}</p>}
      <div className={styles.tabs}>
        <Tabs
          label="Parts of the run"
          tabs={tabs}
          chosen={chosen}
          onChoose={(id) => setParams(id === "timeline" ? {} : { tab: id }, { replace: true })}
        />
      </div>
    </>
  );
};

const OneRun = ({ runId }: { runId: string }) => {
  const { data: run, error, refetch } = useRun(runId);
  const trace = useTrace(run?.thread_id, runId);
  if (statusOf(error) === 404)
    return (
      <>
        <h1 className="unseen">Run</h1>
        <EmptyState
          icon={FileQuestion}
          title="This run does not exist"
          action={<Link href="/runs">Show all runs</Link>}
        >
          It was deleted, or you may not see it.
        </EmptyState>
      </>
    );
  return (
    <>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {run === undefined && <h1 className="unseen">Run</h1>}
      {run === undefined && error === null && <Skeleton lines={8} label="Loading the run" />}
      {run !== undefined && <RunBody run={run} trace={trace} />}
    </>
  );
};

export default function RunPage() {
  const { runId = "" } = useParams<{ runId: string }>();
  return (
    <div className={styles.page}>
      <OneRun key={runId} runId={runId} />
    </div>
  );
}
