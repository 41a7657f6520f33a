import { useQueryClient } from "@tanstack/react-query";
import { Ellipsis, GitCompareArrows, Trash2, CircleStop } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { Confirmation } from "../design/dialog.tsx";
import { IconButton } from "../design/icon-button.tsx";
import { Menu } from "../design/menu.tsx";
import { truncate } from "../design/truncate.ts";
import { assistantText, isOfGraph, useAssistantNames } from "../parts/assistants.ts";
import { CancelDialog } from "../parts/cancel-dialog.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { shortId } from "../parts/record-link.tsx";
import { CopyAs } from "../parts/request-snippets/copy-as.tsx";
import { isOver, originOf } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { Time } from "../parts/time.tsx";
import { useNavigate } from "../parts/use-navigate.ts";
import { useIsWide } from "../design/use-is-wide.ts";
import { useConnection } from "../server/connection.tsx";
import { CompareDialog } from "./compare-dialog.tsx";
import { runName } from "./run-name.ts";
import { requestOf, type RunDetails } from "./run-record.ts";
import styles from "./run-page.module.css";

const AssistantOf = ({ run }: { run: RunDetails }) => {
  const { data: assistants } = useAssistantNames();
  if (assistants === undefined) return null;
  const found = assistants.find(({ assistant_id: id }) => id === run.assistant_id);
  // The default assistant has the name of its graph, which stands beside it.
  if (found !== undefined && isOfGraph(found)) return null;
  return (
    <span>
      Assistant{" "}
      <Link href={`/assistants/${run.assistant_id}`}>
        {found === undefined ? `…${shortId(run.assistant_id)}` : assistantText(found)}
      </Link>
    </span>
  );
};

export const RunHead = ({ run }: { run: RunDetails }) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<"cancel" | "delete" | "compare">();
  const [fault, setFault] = useState<unknown>();
  const isWide = useIsWide(40);
  const path = `/threads/${run.thread_id}/runs/${run.run_id}`;
  const close = (): void => setDialog(undefined);
  const leave = async (): Promise<void> => {
    navigate("/runs");
    await queries.invalidateQueries({ queryKey: ["runs", "list"] });
  };
  const remove = async (): Promise<void> => {
    try {
      await request("DELETE", path);
      await leave();
    } catch (thrown) {
      setFault(thrown);
    }
  };
  const end = isOver(run)
    ? ({ label: "Delete", icon: Trash2, onSelect: () => setDialog("delete") } as const)
    : ({ label: "Cancel", icon: CircleStop, onSelect: () => setDialog("cancel") } as const);
  const origin = originOf(run);
  return (
    <>
      <div className={styles.head}>
        <h1 title={run.run_id}>{runName(run)}</h1>
        <Status status={run.status} />
        <div className={styles.actions}>
          <CopyAs request={() => requestOf(run)} />
          {isWide ? (
            <>
              <button type="button" className="plain" onClick={() => setDialog("compare")}>
                <GitCompareArrows aria-hidden size={16} strokeWidth={1.75} />
                Compare
              </button>
              <button type="button" className="plain danger" onClick={end.onSelect}>
                <end.icon aria-hidden size={16} strokeWidth={1.75} />
                {end.label}
              </button>
            </>
          ) : (
            <Menu
              trigger={<IconButton label="More actions" icon={Ellipsis} />}
              items={[
                { label: "Compare", icon: GitCompareArrows, onSelect: () => setDialog("compare") },
                { ...end, isDanger: true },
              ]}
            />
          )}
        </div>
      </div>
      <p className={styles.links}>
        {run.graph_id !== undefined && (
          <span>
            Graph <Link href={`/graph/${run.assistant_id}`}>{truncate(run.graph_id)}</Link>
          </span>
        )}
        <AssistantOf run={run} />
        <Link href={`/threads/${run.thread_id}`}>Open thread</Link>
        <Link href={`/threads/${run.thread_id}/history`}>Time travel</Link>
        <Link href={`/runs?thread=${run.thread_id}`}>All runs of the thread</Link>
        {origin !== undefined && <span>From {origin}</span>}
        <Time iso={run.created_at} />
      </p>
      <ErrorNotice error={fault} />
      {dialog === "compare" && <CompareDialog run={run} onClose={close} />}
      {dialog === "delete" && (
        <Confirmation
          question="Delete this run?"
          action="Delete"
          onConfirm={() => void remove()}
          onClose={close}
        />
      )}
      {dialog === "cancel" && (
        <CancelDialog
          question="Cancel this run?"
          onCancel={async (action) => {
            await request("POST", `${path}/cancel?wait=true&action=${action}`);
            if (action === "rollback") await leave();
            else await queries.invalidateQueries({ queryKey: ["runs"] });
          }}
          onClose={close}
        />
      )}
    </>
  );
};
