import type { ReactNode } from "react";
import styles from "./fields.module.css";

/** Names and what they are, below each other; what is undefined is left out. */
export const Fields = ({ fields }: { fields: readonly (readonly [string, ReactNode])[] }) => (
  <dl className={styles.fields}>
    {fields
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);
