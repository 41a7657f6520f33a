import type { ReactNode } from "react";
import styles from "./fields.module.css";

/** Leaves out undefined fields. */
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
