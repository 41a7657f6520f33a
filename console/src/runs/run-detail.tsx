import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { CancelDialog } from "../parts/cancel-dialog.tsx";
import { Confirmation, Dialog } from "../design/dialog.tsx";
import { Fields } from "../parts/fields.tsx";
import { JsonView } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { isOver, durationOf, originOf, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { durationText, Time } from "../parts/time.tsx";
import { useNow } from "../parts/use-now.ts";
import { refetchEvery } from "../server/queries.ts";
import { statusOf, useConnection } from "../server/connection.tsx";
import { attemptsText, readFailedNodes, readRun, type Delivery, type RunDetails } from "./run-record.ts";
import styles from "./runs.module.css";

const POLL_MS = 2_000;

const Text = ({ value }: { value: unknown }) => (
  <pre className={styles.message} tabIndex={0}>
    {typeof value === "string" ? value : JSON.stringify(value, null, 2)}
  </pre>
);

const ErrorOf = ({ run, error }: { run: RunDetails; error: NonNullable<Run["error"]> }) => {
  const connection = useConnection();
  const { data: nodes = [] } = useQuery({
    queryKey: ["runs", "failed nodes", run.run_id],
    queryFn: () => readFailedNodes(connection, run),
    enabled: run.status === "error",
    retry: false,
  });
  const { error: kind, message, ...others } = error;
  return (
    <section className="notice bad stack" aria-label="Error">
      <h3>{typeof kind === "string" ? kind : "Error"}</h3>
      <Text value={message} />
      {nodes.map(({ node, error: thrown }) => (
        <div key={node}>
          <p>
            Error in node <code>{node}</code>
          </p>
          <Text value={thrown} />
        </div>
      ))}
      {Object.entries(others).map(([name, value]) => (
        <div key={name}>
          <p>{name}</p>
          <Text value={value} />
        </div>
      ))}
    </section>
  );
};

const DeliveryOf = ({ run }: { run: RunDetails }) => {
  const { request } = useConnection();
  const { data, error } = useQuery({
    queryKey: ["webhooks", run.run_id],
    queryFn: () => request<Delivery>("GET", `/webhooks/deliveries/${run.run_id}`),
    retry: false,
    refetchInterval: ({ state }) => (state.data?.state === "pending" ? POLL_MS : false),
  });
  return (
    <section className="stack" aria-label="Webhook">
      <h3>Webhook</h3>
      {statusOf(error) === 404 ? (
        <p className="faint">No delivery is stored: the run has not ended, or the record has expired.</p>
      ) : (
        <ErrorNotice error={error} />
      )}
      {data !== undefined && (
        <Fields
          fields={[
            ["Address", data.url],
            ["State", data.state],
            ["Failures", data.failures],
            ["Answered", data.last_status ?? undefined],
            ["Error", data.last_error ?? undefined],
            ["Last try", data.last_attempt_at === null ? undefined : <Time iso={data.last_attempt_at} />],
            ["Next try", data.next_attempt_at === null ? undefined : <Time iso={data.next_attempt_at} />],
          ]}
        />
      )}
    </section>
  );
};

const Section = ({ name, value }: { name: string; value: unknown }) =>
  value == null ? null : (
    <section className="stack" aria-label={name}>
      <h3>{name}</h3>
      <JsonView value={value} depth={3} />
    </section>
  );

const RunText = ({ run }: { run: RunDetails }) => {
  const now = useNow(!isOver(run));
  const { input, command, config, context, webhook, ...options } = run.kwargs ?? {};
  const waited =
    run.run_started_at == null
      ? undefined
      : durationText(Math.max(0, Date.parse(run.run_started_at) - Date.parse(run.created_at)));
  const time = (iso: string | null | undefined) => (iso == null ? undefined : <Time iso={iso} />);
  return (
    <>
      <Fields
        fields={[
          ["Status", <Status key="status" status={run.status} />],
          ["Graph", run.graph_id],
          [
            "Assistant",
            <Link key="assistant" href={`/assistants/${run.assistant_id}`}>
              {run.assistant_id}
            </Link>,
          ],
          ["Run", run.run_id],
          ["Origin", originOf(run)],
          ["Created", time(run.created_at)],
          ["Started", time(run.run_started_at)],
          ["Ended", time(run.run_ended_at)],
          ["Waited", waited],
          ["Duration", durationOf(run, now)],
          ["Attempts", run.attempts === undefined ? undefined : attemptsText(run)],
          ["Multitask strategy", run.multitask_strategy],
        ]}
      />
      <p className="row">
        <Link href={`/threads/${run.thread_id}`}>Open thread</Link>
        <Link href={`/threads/${run.thread_id}/history`}>Time travel</Link>
        <Link href={`/runs?thread=${run.thread_id}`}>All runs of the thread</Link>
      </p>
      {run.error != null && <ErrorOf run={run} error={run.error} />}
      <Section name="Input" value={input} />
      <Section name="Command" value={command} />
      <Section name="Config" value={config} />
      <Section name="Context" value={context} />
      <Section name="Metadata" value={run.metadata} />
      <Section name="Options" value={Object.keys(options).length === 0 ? undefined : options} />
      {typeof webhook === "string" && <DeliveryOf run={run} />}
    </>
  );
};

export const RunDetail = ({
  runId,
  onClose,
  onDeleted,
}: {
  runId: string;
  onClose(): void;
  onDeleted(): void;
}) => {
  const connection = useConnection();
  const queries = useQueryClient();
  const [dialog, setDialog] = useState<"cancel" | "delete">();
  const [deleteError, setDeleteError] = useState<unknown>();
  const {
    data: run,
    error,
    refetch,
  } = useQuery({
    queryKey: ["runs", "one", runId],
    queryFn: () => readRun(connection, runId),
    refetchInterval: (query) =>
      refetchEvery(query.state.data !== undefined && !isOver(query.state.data) ? POLL_MS : false)(query),
  });
  const path = `/threads/${run?.thread_id}/runs/${runId}`;
  const remove = async (): Promise<void> => {
    try {
      await connection.request("DELETE", path);
      onDeleted();
    } catch (thrown) {
      setDeleteError(thrown);
    }
  };
  return (
    <Dialog title="Run" onClose={onClose}>
      <ErrorNotice error={error ?? deleteError} onRetry={error === null ? undefined : () => void refetch()} />
      {run !== undefined && (
        <>
          <div className="row">
            {isOver(run) ? (
              <button type="button" className="danger" onClick={() => setDialog("delete")}>
                Delete
              </button>
            ) : (
              <button type="button" className="danger" onClick={() => setDialog("cancel")}>
                Cancel
              </button>
            )}
          </div>
          <RunText run={run} />
        </>
      )}
      {dialog === "delete" && (
        <Confirmation
          question="Delete this run?"
          action="Delete"
          onConfirm={() => void remove()}
          onClose={() => setDialog(undefined)}
        />
      )}
      {dialog === "cancel" && (
        <CancelDialog
          question="Cancel this run?"
          onCancel={async (action) => {
            await connection.request("POST", `${path}/cancel?wait=true&action=${action}`);
            if (action === "rollback") return onDeleted();
            await queries.invalidateQueries({ queryKey: ["runs"] });
          }}
          onClose={() => setDialog(undefined)}
        />
      )}
    </Dialog>
  );
};
