import { useState } from "react";
import { Dialog } from "../design/dialog.tsx";
import { ErrorNotice } from "./notice.tsx";

export type CancelAction = "interrupt" | "rollback";

/** Stays open with the error if `onCancel` rejects. */
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
  const [isSending, setIsSending] = useState(false);
  const cancel = async (action: CancelAction): Promise<void> => {
    setIsSending(true);
    setFault(undefined);
    try {
      await onCancel(action);
      onClose();
    } catch (error) {
      setFault(error);
      setIsSending(false);
    }
  };
  return (
    <Dialog title={question} onClose={onClose}>
      <p>Interrupt keeps the run and its results. Roll back removes the results and deletes the run.</p>
      <ErrorNotice error={fault} />
      <div className="row">
        <button
          type="button"
          className="danger"
          disabled={isSending}
          onClick={() => void cancel("interrupt")}
        >
          Interrupt
        </button>
        <button type="button" className="danger" disabled={isSending} onClick={() => void cancel("rollback")}>
          Roll back
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
};
