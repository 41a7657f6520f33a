import { useState } from "react";
import { CancelDialog } from "../parts/cancel-dialog.tsx";
import { Confirmation } from "../design/dialog.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { isOver, type Run } from "../parts/run.ts";
import { statusOf } from "../server/api-error.ts";
import { messageOf, useConnection, type Connection } from "../server/connection.tsx";

const counted = (count: number): string => (count === 1 ? "1 run" : `${count} runs`);

/** A browser has six connections to a server. */
const AT_ONCE = 4;

/** A missing run counts as deleted. */
const removeAll = async (
  { request }: Pick<Connection, "request">,
  runs: readonly Run[],
): Promise<{ runIds: string[]; error: Error | undefined }> => {
  const waiting = [...runs];
  const runIds: string[] = [];
  const reasons = new Set<string>();
  const work = async (): Promise<void> => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) {
      try {
        await request("DELETE", `/threads/${run.thread_id}/runs/${run.run_id}`);
      } catch (error) {
        if (statusOf(error) === 404) continue;
        runIds.push(run.run_id);
        reasons.add(messageOf(error));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (runIds.length === 0) return { runIds, error: undefined };
  const [first = "", ...others] = reasons;
  const why = others.length === 0 ? first : `${first} (and ${others.length} other reasons)`;
  return { runIds, error: new Error(`${counted(runIds.length)} of ${runs.length} not deleted: ${why}`) };
};

/** `onDone`: gets the ids that stay selected. */
export const BulkActions = ({
  runs,
  onDone,
}: {
  runs: readonly Run[];
  onDone(left: readonly string[]): void;
}) => {
  const { request } = useConnection();
  const [dialog, setDialog] = useState<"cancel" | "delete">();
  const [fault, setFault] = useState<unknown>();
  const [isDeleting, setIsDeleting] = useState(false);
  const unfinished = runs.filter((run) => !isOver(run));
  const ended = runs.filter(isOver);

  const remove = async (): Promise<void> => {
    setFault(undefined);
    setIsDeleting(true);
    const failed = await removeAll({ request }, ended);
    setIsDeleting(false);
    setFault(failed.error);
    onDone(failed.runIds);
  };
  return (
    <>
      <span>{counted(runs.length)} selected</span>
      {unfinished.length > 0 && (
        <button type="button" className="danger" onClick={() => setDialog("cancel")}>
          Cancel {unfinished.length}
        </button>
      )}
      {ended.length > 0 && (
        <button type="button" className="danger" disabled={isDeleting} onClick={() => setDialog("delete")}>
          Delete {ended.length}
        </button>
      )}
      <ErrorNotice error={fault} />
      {dialog === "cancel" && (
        <CancelDialog
          question={`Cancel ${counted(unfinished.length)}?`}
          onCancel={async (action) => {
            await request("POST", `/runs/cancel?action=${action}`, {
              run_ids: unfinished.map(({ run_id }) => run_id),
            });
            onDone([]);
          }}
          onClose={() => setDialog(undefined)}
        />
      )}
      {dialog === "delete" && (
        <Confirmation
          question={`Delete ${counted(ended.length)}?`}
          action="Delete"
          onConfirm={() => void remove()}
          onClose={() => setDialog(undefined)}
        />
      )}
    </>
  );
};
