import type { ReactNode } from "react";
import styles from "./table.module.css";

interface TableProps {
  label: string;
  columns: readonly ReactNode[];
  children: ReactNode;
}

export const Table = ({ label, columns, children }: TableProps) => (
  <div className={styles.region} role="region" aria-label={label} tabIndex={0}>
    <table className={styles.table}>
      <thead>
        <tr>
          {columns.map((column, index) => (
            <th key={index} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);
