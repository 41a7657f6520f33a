import styles from "./status.module.css";

const TONES: ReadonlyMap<string, string> = new Map([
  ["success", "good"],
  ["idle", "good"],
  ["running", "busy"],
  ["busy", "busy"],
  ["pending", "busy"],
  ["interrupted", "busy"],
  ["error", "bad"],
  ["timeout", "bad"],
]);

export const Status = ({ status }: { status: string }) => (
  <span className={styles[TONES.get(status) ?? "other"]} data-status={status}>
    {status}
  </span>
);
