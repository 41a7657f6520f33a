import type { ReactNode } from "react";
import styles from "./data-table.module.css";

interface DataTableProps {
  label: string;
  /** The first one names the rows, the others have numbers unless `texts` has their place. */
  columns: readonly string[];
  rows: readonly { id: string; cells: readonly ReactNode[] }[];
  texts?: readonly number[];
}

/** On a phone each row is a card. */
export const DataTable = ({ label, columns, rows, texts = [] }: DataTableProps) => {
  const kindOf = (place: number): string | undefined =>
    place === 0 || texts.includes(place) ? styles.text : styles.number;
  return (
    <div role="region" aria-label={label} tabIndex={0} className={styles.region}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map((column, place) => (
              <th key={place} scope="col" className={kindOf(place)}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, cells }) => (
            <tr key={id}>
              {cells.map((cell, place) =>
                place === 0 ? (
                  <th key={place} scope="row" className={styles.text}>
                    {cell}
                  </th>
                ) : (
                  <td key={place} className={kindOf(place)} data-column={columns[place]}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};
