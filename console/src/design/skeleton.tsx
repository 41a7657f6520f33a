import styles from "./skeleton.module.css";

/** Stands for lines that load; invisible for the first moment, so a fast answer does not flicker. */
export const Skeleton = ({ lines = 3, label = "Loading" }: { lines?: number; label?: string }) => (
  <div className={styles.skeleton} role="status">
    <span className="unseen">{label}</span>
    {Array.from({ length: lines }, (_, index) => (
      <span key={index} aria-hidden className={styles.line} />
    ))}
  </div>
);
