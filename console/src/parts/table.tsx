import type { ReactNode } from "react";
import styles from "./table.module.css";

/** A table that scrolls on its own where it is wider than the page; `label` says of what it is. */
export const Table = ({ label, head, children }: { label: string; head: ReactNode; children: ReactNode }) => (
  <div className={styles.region} role="region" aria-label={label} tabIndex={0}>
    <table className={styles.table}>
      <thead>
        <tr>{head}</tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);
