import { useState } from "react";
import { Dialog } from "./dialog.tsx";
import { FaultNotice } from "./notice.tsx";

export type CancelAction = "interrupt" | "rollback";

/** Asks how runs are to be cancelled. `onCancel` rejects with what the server refused; then the dialog stays and says it. */
export const CancelDialog = ({
  question,
  onCancel,
  onClose,
}: {
  question: string;
  onCancel(action: CancelAction): Promise<unknown>;
  onClose(): void;
}) => {
  const [fault, setFault] = useState<unknown>();
  const [isAtWork, setIsAtWork] = useState(false);
  const cancel = async (action: CancelAction): Promise<void> => {
    setIsAtWork(true);
    setFault(undefined);
    try {
      await onCancel(action);
      onClose();
    } catch (error) {
      setFault(error);
      setIsAtWork(false);
    }
  };
  return (
    <Dialog title={question} onClose={onClose}>
      <p>Interrupt keeps the run and its results. Roll back removes the results and deletes the run.</p>
      <FaultNotice error={fault} />
      <div className="row">
        <button type="button" className="danger" disabled={isAtWork} onClick={() => void cancel("interrupt")}>
          Interrupt
        </button>
        <button type="button" className="danger" disabled={isAtWork} onClick={() => void cancel("rollback")}>
          Roll back
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
};
