import type { ReactNode } from "react";
import styles from "./page-head.module.css";

/** The first line of a page: its title, then filters, then actions at the right. */
export const PageHead = ({
  title,
  children,
  actions,
}: {
  title: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
}) => (
  <header className={styles.head}>
    <h1>{title}</h1>
    {children}
    {actions !== undefined && <div className={styles.actions}>{actions}</div>}
  </header>
);
