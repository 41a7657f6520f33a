import type { ReactNode } from "react";
import styles from "./chip.module.css";

interface ChipProps {
  isOn: boolean;
  onToggle(): void;
  children: ReactNode;
  /** How many records match. */
  count?: number | undefined;
}

/** A filter that is on or off. */
export const Chip = ({ isOn, onToggle, children, count }: ChipProps) => (
  <button type="button" className={styles.chip} aria-pressed={isOn} onClick={onToggle}>
    {children}
    {count !== undefined && <span className={styles.count}>{count.toLocaleString("en")}</span>}
  </button>
);

/** A number beside a name, e.g. of threads that wait. */
export const Badge = ({ children }: { children: ReactNode }) => (
  <span className={styles.badge}>{children}</span>
);
