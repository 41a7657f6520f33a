import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { useRef, type ReactNode } from "react";
import { IconButton } from "./icon-button.tsx";
import { truncate } from "./truncate.ts";
import styles from "./dialog.module.css";
import floating from "./floating.module.css";

const CHARACTERS_OF_TITLE = 250;

interface DialogProps {
  title: string;
  onClose(): void;
  children: ReactNode;
  /** `side`: a panel at the right edge, which is a sheet at the bottom of a phone. */
  place?: "middle" | "side";
}

/** Not the button that closes: its tooltip would take the first Escape. */
const firstField = (popup: HTMLElement | null): HTMLElement | null | undefined =>
  popup?.querySelector<HTMLElement>(":is(input, select, textarea):enabled");

/** Open as long as it is rendered. */
export const Dialog = ({ title, onClose, children, place = "middle" }: DialogProps) => {
  const popup = useRef<HTMLDivElement>(null);
  return (
    <Base.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={floating.backdrop} />
        <Base.Popup
          ref={popup}
          className={`${floating.modal} ${styles[place]}`}
          initialFocus={(opened) => (opened !== "touch" && firstField(popup.current)) || popup.current}
        >
          <div className={styles.head}>
            <Base.Title render={<h2 />}>{truncate(title, CHARACTERS_OF_TITLE)}</Base.Title>
            <Base.Close render={<IconButton label="Close" icon={X} />} />
          </div>
          <div className={styles.body}>
            <div className="stack">{children}</div>
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
};

interface ConfirmationProps {
  question: string;
  /** E.g. `Delete`. */
  action: string;
  onConfirm(): void;
  onClose(): void;
}

export const Confirmation = ({ question, action, onConfirm, onClose }: ConfirmationProps) => (
  <Dialog title={question} onClose={onClose}>
    <div className={styles.actions}>
      <button type="button" onClick={onClose}>
        Go back
      </button>
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
    </div>
  </Dialog>
);
