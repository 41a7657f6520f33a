import { useState } from "react";
import { CancelDialog } from "../parts/cancel-dialog.tsx";
import { Confirmation } from "../parts/dialog.tsx";
import { FaultNotice } from "../parts/notice.tsx";
import { isOver, type Run } from "../parts/run.ts";
import { useConnection } from "../server/connection.tsx";

const counted = (count: number): string => (count === 1 ? "1 run" : `${count} runs`);

/** What can be done with the runs that are selected. `onDone`: some of them have changed. */
export const SeveralRuns = ({ runs, onDone }: { runs: readonly Run[]; onDone(): void }) => {
  const { request } = useConnection();
  const [asked, setAsked] = useState<"cancel" | "delete">();
  const [fault, setFault] = useState<unknown>();
  const unfinished = runs.filter((run) => !isOver(run));
  const ended = runs.filter(isOver);

  const remove = async (): Promise<void> => {
    setFault(undefined);
    try {
      for (const run of ended) await request("DELETE", `/threads/${run.thread_id}/runs/${run.run_id}`);
    } catch (error) {
      setFault(error);
    }
    onDone();
  };
  return (
    <>
      <span>{counted(runs.length)} selected</span>
      {unfinished.length > 0 && (
        <button type="button" className="danger" onClick={() => setAsked("cancel")}>
          Cancel {unfinished.length}
        </button>
      )}
      {ended.length > 0 && (
        <button type="button" className="danger" onClick={() => setAsked("delete")}>
          Delete {ended.length}
        </button>
      )}
      <FaultNotice error={fault} />
      {asked === "cancel" && (
        <CancelDialog
          question={`Cancel ${counted(unfinished.length)}?`}
          onCancel={async (action) => {
            await request("POST", `/runs/cancel?action=${action}`, {
              run_ids: unfinished.map(({ run_id }) => run_id),
            });
            onDone();
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
      {asked === "delete" && (
        <Confirmation
          question={`Delete ${counted(ended.length)}?`}
          action="Delete"
          onConfirm={() => void remove()}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
};
