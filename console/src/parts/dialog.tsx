import { useEffect, useId, useRef, type ReactNode } from "react";
import { truncate } from "./truncate.ts";

const CHARACTERS_OF_TITLE = 250;

export const Dialog = ({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose(): void;
  children: ReactNode;
}) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const opener = useRef<Element>(null);
  const id = useId();
  useEffect(() => {
    opener.current ??= document.activeElement;
    dialog.current?.showModal();
    return () => {
      // The browser restores the focus only when a dialog closes, not when it is removed.
      if (document.activeElement === document.body && opener.current instanceof HTMLElement)
        opener.current.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={({ target, currentTarget }) => {
        // The event also arrives from nested dialogs.
        if (target === currentTarget) onClose();
      }}
    >
      <div className="stack">
        <div className="row">
          <h2 id={id}>{truncate(title, CHARACTERS_OF_TITLE)}</h2>
          <button
            type="button"
            className="plain"
            style={{ marginLeft: "auto" }}
            onClick={() => dialog.current?.close()}
          >
            Close
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
};

export const Confirmation = ({
  question,
  action,
  onConfirm,
  onClose,
}: {
  question: string;
  /** E.g. `Delete`. */
  action: string;
  onConfirm(): void;
  onClose(): void;
}) => (
  <Dialog title={question} onClose={onClose}>
    <div className="row">
      <button
        type="button"
        className="danger"
        onClick={() => {
          onConfirm();
          onClose();
        }}
      >
        {action}
      </button>
      <button type="button" onClick={onClose}>
        Go back
      </button>
    </div>
  </Dialog>
);
