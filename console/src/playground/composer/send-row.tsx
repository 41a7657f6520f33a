import { ArrowUp } from "lucide-react";
import type { ReactNode } from "react";
import type { Input } from "./input.ts";
import styles from "./composer.module.css";

export interface InputProps {
  isRunning: boolean;
  onSend(input: Input): Promise<void>;
  kinds: ReactNode;
  stop: ReactNode;
}

export const SendRow = ({
  isRunning,
  kinds,
  stop,
  isDisabled,
  children,
  onClick,
}: Omit<InputProps, "onSend"> & {
  isDisabled: boolean;
  children?: ReactNode;
  /** Undefined: the button submits its form. */
  onClick?(): void;
}) => (
  <div className={styles.buttons}>
    {children}
    {kinds}
    <span className={styles.gap} />
    {stop}
    <button
      type={onClick === undefined ? "submit" : "button"}
      className="primary"
      disabled={isDisabled}
      // The second click of a double click would send twice.
      onClick={(event) => (event.detail > 1 ? event.preventDefault() : onClick?.())}
    >
      <ArrowUp aria-hidden size={16} />
      {isRunning ? "Send next" : "Send"}
    </button>
  </div>
);
