import type { CSSProperties, ReactNode } from "react";
import styles from "./table.module.css";

interface TableProps {
  label: string;
  columns: readonly ReactNode[];
  /** The places of columns with numbers, whose names stand at the right. */
  numbers?: readonly number[];
  children: ReactNode;
}

/** As CSS reads it: a card of a phone shows the name before each cell. */
const namesOf = (columns: readonly ReactNode[]): CSSProperties =>
  Object.fromEntries(
    columns.map((column, index) => [
      `--column-${index + 1}`,
      JSON.stringify(typeof column === "string" ? column : ""),
    ]),
  );

/** Becomes a list of cards on a phone, for tables of at most ten columns. */
export const Table = ({ label, columns, numbers = [], children }: TableProps) => (
  <div className={styles.region} role="region" aria-label={label} tabIndex={0}>
    <table className={styles.table} style={namesOf(columns)}>
      <thead>
        <tr>
          {columns.map((column, index) => (
            <th key={index} scope="col" className={numbers.includes(index) ? styles.number : undefined}>
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);
