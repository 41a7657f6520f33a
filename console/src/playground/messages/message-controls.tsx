import { Boxes, ChevronLeft, ChevronRight, Pencil, RefreshCw } from "lucide-react";
import { IconButton } from "../../design/icon-button.tsx";
import { CopyButton } from "./copy-button.tsx";
import type { Alternatives, MessageActions } from "./message-actions.ts";
import type { ShownMessage } from "./messages.ts";
import styles from "./message.module.css";

interface MessageControlsProps {
  message: ShownMessage;
  type: string;
  /** Empty: nothing to copy. */
  copied: string;
  /** Whether the message can be changed now. */
  isEnabled: boolean;
  alternatives: Alternatives | undefined;
  actions: MessageActions;
  onEdit(): void;
  /** Undefined without subgraphs. */
  inside: { isOpen: boolean; toggle(): void } | undefined;
}

/** They appear on hover and focus, at a place that is always kept. */
export const MessageControls = (props: MessageControlsProps) => {
  const { message, type, copied, isEnabled, alternatives, actions, onEdit, inside } = props;
  const canChange = isEnabled && message.id !== undefined;
  return (
    <>
      {alternatives !== undefined && (
        <span className={styles.branches} role="group" aria-label="Branches">
          <IconButton
            label="Previous branch"
            icon={ChevronLeft}
            size="small"
            disabled={alternatives.position === 0 || !isEnabled}
            onClick={() => actions.showAlternative(message, -1)}
          />
          <span>
            {alternatives.position + 1}/{alternatives.count}
          </span>
          <IconButton
            label="Next branch"
            icon={ChevronRight}
            size="small"
            disabled={alternatives.position === alternatives.count - 1 || !isEnabled}
            onClick={() => actions.showAlternative(message, 1)}
          />
        </span>
      )}
      <span className={styles.actions}>
        {copied !== "" && <CopyButton text={copied} />}
        {canChange && type === "human" && (
          <IconButton label="Edit" icon={Pencil} size="small" onClick={onEdit} />
        )}
        {canChange && type === "ai" && (
          <IconButton
            label="Regenerate"
            icon={RefreshCw}
            size="small"
            onClick={() => void actions.regenerate(message).catch(() => undefined)}
          />
        )}
        {canChange && type === "ai" && inside !== undefined && (
          <IconButton
            label="Inside"
            icon={Boxes}
            size="small"
            aria-expanded={inside.isOpen}
            onClick={inside.toggle}
          />
        )}
      </span>
    </>
  );
};
