import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import styles from "./empty-state.module.css";

interface EmptyStateProps {
  icon: LucideIcon;
  title: string;
  /** One sentence: what will be here, and how to get it. */
  children?: ReactNode;
  action?: ReactNode;
}

export const EmptyState = ({ icon: Icon, title, children, action }: EmptyStateProps) => (
  <div className={styles.empty}>
    <Icon aria-hidden size={28} strokeWidth={1.25} />
    <h2>{title}</h2>
    {children !== undefined && <p className="faint">{children}</p>}
    {action}
  </div>
);
