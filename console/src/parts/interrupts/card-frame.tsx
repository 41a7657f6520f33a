import { MessageCircleQuestionMark } from "lucide-react";
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from "react";
import { truncate } from "../../design/truncate.ts";
import styles from "./interrupts.module.css";

/** Properties of all cards. */
export interface CardPlace {
  isShown: boolean;
  /** Moves the focus here, because the card before has lost it. */
  takesFocus: boolean;
  /** E.g. `2 of 3` and the buttons to the others. */
  position: ReactNode;
  /** What was decided, until all cards are. */
  decided: string | undefined;
  /** Whether the page starts actions by single keys. */
  showsKeys: boolean;
}

interface CardFrameProps {
  place: CardPlace;
  name: string;
  title: ReactNode;
  footer: ReactNode;
  /** By Ctrl or Cmd and Enter; never consents to something that nobody wrote. */
  onSendWritten(): void;
  children: ReactNode;
}

const NAME_CHARACTERS = 80;

export const CardFrame = ({ place, name, title, footer, onSendWritten, children }: CardFrameProps) => {
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.takesFocus) card.current?.focus();
  }, [place.takesFocus]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    onSendWritten();
  };
  return (
    <div
      ref={card}
      role="group"
      aria-label={truncate(name, NAME_CHARACTERS)}
      tabIndex={-1}
      hidden={!place.isShown}
      data-card
      className={styles.card}
      onKeyDown={onKeyDown}
    >
      <div className={styles.head}>
        <MessageCircleQuestionMark aria-hidden size={16} strokeWidth={1.75} />
        <h2>{title}</h2>
        {place.position}
      </div>
      <div className={styles.body}>{children}</div>
      <div className={styles.footer}>
        {place.decided !== undefined && (
          <p className="faint">{place.decided}. Everything is sent when all are decided.</p>
        )}
        <div className={styles.buttons}>{footer}</div>
      </div>
    </div>
  );
};

/** The letter that presses a button. */
export const KeyHint = ({ keys, isShown }: { keys: string; isShown: boolean }) =>
  isShown ? <kbd aria-hidden>{keys}</kbd> : null;
